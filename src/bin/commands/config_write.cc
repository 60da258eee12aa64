#include "bin/commands/config_write.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/machine.h"
#include "bin/commands/probe_file.h"
#include "bin/parts/print.h"

namespace backstay::bin {
namespace {

const Finding* finding(const MachineFacts& facts, std::string_view name) {
  const auto found = std::ranges::find(facts.findings, name, &Finding::name);
  return found == facts.findings.end() ? nullptr : &*found;
}

void give_reason(MachineFacts& facts, const std::string& key, const std::string& why) {
  if (!why.empty()) facts.reasons.emplace_back(key, why);
}

// A switch that has no effect here, so that later messages do not speak of it again.
void switch_off(MachineFacts& facts, std::string_view check, const std::string& key, bool& on) {
  const Finding* found = finding(facts, check);
  if (!on || found == nullptr || found->health == Health::good) return;
  on = false;
  give_reason(facts, key, found->found);
}

std::string pool_reason(const Config& config) {
  const std::string room = fmt::format("this machine has {} of memory", bytes_text(memory_bytes()));
  const double disk = probed_disk_write(config.storage.dir);
  if (disk <= 0) return room + "; `backstay probe` measures how fast the disk takes a full pool";
  const double pool = static_cast<double>(config.pool.size_mib << 20);
  return fmt::format("{}; the disk takes a full pool in {} ({})", room, duration_text(pool / disk),
                     rate_text(disk));
}

// Wrapped; a word that is longer than a line has its own.
std::string comment(const std::string& text) {
  constexpr std::size_t columns = 100;
  std::string out;
  std::string line = "#";
  std::istringstream words(printable(text));
  for (std::string word; words >> word;) {
    if (line.size() > 1 && line.size() + 1 + word.size() > columns) {
      out += std::exchange(line, "#") + "\n";
    }
    line += " " + word;
  }
  return out + line + "\n";
}

std::string top(const MachineFacts& facts) {
  std::string text =
      comment(
          fmt::format("Settings of Backstay for {}, written by `backstay config --write` on {}.",
                      host_name(), time_text(system_clock().wall_ns()))) +
      comment("Every key may be left out: those that are comments have the value shown.") +
      comment(
          "`backstay config` prints what holds; docs/guide/choosing.md helps to choose levels "
          "and intervals.");
  bool any = false;
  for (const Finding& one : facts.findings) {
    if (one.advice.empty()) continue;
    if (!std::exchange(any, true)) text += "#\n# `backstay doctor` says:\n";
    text += comment(fmt::format("- {}: {}: {}", one.name, one.found, one.advice));
  }
  return text;
}

std::string section_of(const std::string& key) { return key.substr(0, key.find('.')); }
std::string name_of(const std::string& key) { return key.substr(key.find('.') + 1); }

}  // namespace

MachineFacts look_at_machine(Config& config) {
  const TrialFolders storage(config.storage.dir);
  MachineFacts facts{check_machine(config), {}};
  if (const Finding* room = finding(facts, "storage")) {
    give_reason(facts, "storage.dir", room->found);
  }
  give_reason(facts, "pool.size_mib", pool_reason(config));
  switch_off(facts, "O_DIRECT", "writer.direct", config.writer.direct);
  switch_off(facts, "io_uring", "writer.io_uring", config.writer.io_uring);
  return facts;
}

std::string first_config(const Config& config, const MachineFacts& facts) {
  std::string text = top(facts);
  const std::vector<std::string> values = config_values(config);
  const std::vector<ConfigKey> keys = config_keys();
  std::string section;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const ConfigKey& key = keys[i];
    if (section_of(key.name) != section) {
      section = section_of(key.name);
      text += fmt::format("\n[{}]\n", section);
    }
    text += comment(key.meaning);
    text += comment(fmt::format("({}{}{}; {})", key.type, key.range.empty() ? "" : ", ", key.range,
                                key.environment));
    const auto why =
        std::ranges::find(facts.reasons, key.name, &std::pair<std::string, std::string>::first);
    if (why != facts.reasons.end()) text += comment("Here: " + why->second + ".");
    const char* as_comment = values[i] == key.initial ? "# " : "";
    text += fmt::format("{}{} = {}\n", as_comment, name_of(key.name), values[i]);
  }
  return text;
}

Status write_new_file(const std::string& path, const std::string& text) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.valid() && errno == EEXIST) {
    return Error(Code::invalid, path +
                                    " exists, and is left as it is: name another file, or move it "
                                    "away");
  }
  if (!file.valid()) return errno_error("write " + path, errno);
  for (std::string_view left = text; !left.empty();) {
    const ssize_t written = ::write(file.get(), left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int why = errno;
      ::unlink(path.c_str());
      return errno_error("write " + path, why);
    }
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace backstay::bin
