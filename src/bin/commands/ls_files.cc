#include "bin/commands/ls_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "bin/parts/exit_code.h"
#include "bin/parts/print.h"
#include "store/home/home_mark.h"

namespace backstay::bin {

namespace {

using Json = nlohmann::ordered_json;

struct Listed {
  std::string job;
  VersionNumber version = 0;
  Level level = Level::none;
  std::uint64_t bytes = 0;
  // Of the record that counts the greatest: when it came to the path, version, node, object.
  std::tuple<std::uint64_t, VersionNumber, NodeId, std::uint64_t> age;
  std::optional<bool> home;  // none: of a copy, which knows nothing of paths
  std::string why;           // it is not
};

using Files = std::map<std::string, Listed>;  // by path

// The job itself, and those of its captured files.
Result<std::vector<std::string>> jobs_of(Stored& stored, const std::string& job) {
  BACKSTAY_ASSIGN(std::vector<std::string> names, stored.jobs());
  std::erase_if(names, [&](const std::string& name) {
    return name != job && !name.starts_with(job + ".files.");
  });
  if (names.empty()) BACKSTAY_TRY(stored.versions(job));  // says which jobs there are
  return names;
}

void tell_home(Listed& file, const std::string& path, const std::optional<format::HomeMark>& mark) {
  if (!mark) {
    file.home = false;
    file.why = "not yet";
    return;
  }
  const auto at = std::ranges::find(mark->files, path, &format::FileNotHome::path);
  file.home = at == mark->files.end();
  if (!*file.home) {
    file.why = (at->how == format::NotHome::kept ? "kept: " : "waits: ") + at->why;
  }
}

Status add(Files& files, Stored& stored, const std::string& job,
           const store::StoredVersion& version, NodeId node) {
  BACKSTAY_ASSIGN(const format::Manifest manifest,
                  store::read_manifest(stored.tier(), job, version.record, node));
  const bool any = std::ranges::any_of(manifest.objects, [](const format::ObjectEntry& object) {
    return object.id.kind == format::ObjectKind::files;
  });
  if (!any) return {};
  BACKSTAY_ASSIGN(NodeReader reader, NodeReader::open(stored.tier(), manifest));
  BACKSTAY_ASSIGN(const auto mark, store::read_home_mark(stored.tier(), version.record, node));
  for (const format::ObjectEntry& object : manifest.objects) {
    if (object.id.kind != format::ObjectKind::files) continue;
    BACKSTAY_ASSIGN(const auto found, reader.files(object));
    for (const format::CapturedFile& file : found) {
      Listed listed{job, version.version, version.level, file.bytes, {}, {}, ""};
      listed.age = {file.placed_ns, version.version, node, object.id.key()};
      if (version.level != Level::durable) tell_home(listed, file.path, mark);
      const auto [at, added] = files.try_emplace(file.path, listed);
      if (!added && at->second.age < listed.age) at->second = std::move(listed);
    }
  }
  return {};
}

Result<Files> files_of(Stored& stored, const std::string& job) {
  BACKSTAY_ASSIGN(const auto names, jobs_of(stored, job));
  Files files;
  for (const std::string& name : names) {
    BACKSTAY_ASSIGN(const auto versions, stored.versions(name));
    for (const store::StoredVersion& version : versions) {
      if (!version.good()) continue;
      BACKSTAY_ASSIGN(const auto nodes, stored.nodes(name, version.version));
      for (const NodeId node : nodes) BACKSTAY_TRY(add(files, stored, name, version, node));
    }
  }
  return files;
}

Json as_json(const std::string& path, const Listed& file) {
  return {{"path", printable(path)},
          {"bytes", file.bytes},
          {"job", file.job},
          {"version", file.version},
          {"level", level_name(file.level)},
          {"home", file.home ? Json(*file.home) : Json(nullptr)},
          {"why", printable(file.why)}};
}

}  // namespace

Result<int> list_files(Stored& stored, const std::string& job, bool json) {
  BACKSTAY_ASSIGN(const Files files, files_of(stored, job));
  const auto waiting = std::ranges::count_if(
      files, [](const auto& one) { return one.second.home && !*one.second.home; });
  if (json) {
    Json list = Json::array();
    for (const auto& [path, file] : files) list.push_back(as_json(path, file));
    print_json({{"dir", stored.dir()}, {"job", job}, {"files", list}, {"not_home", waiting}});
    return files.empty() ? exit_nothing : exit_ok;
  }
  if (files.empty()) {
    remark("job " + job + " has no captured files in " + stored.dir());
    return exit_nothing;
  }
  Table table({"FILE", ">BYTES", ">VERSION", "LEVEL", "AT HOME"});
  for (const auto& [path, file] : files) {
    table.add({path, bytes_text(file.bytes), std::to_string(file.version),
               std::string(level_name(file.level)),
               !file.home ? "-" : (*file.home ? "yes" : printable(file.why))});
  }
  fmt::print("{}", table.text());
  if (waiting > 0) {
    fmt::print("{} at home yet; `backstay export {} VERSION --file PATH` gets one by hand\n",
               count_text(static_cast<std::size_t>(waiting), "file") +
                   (waiting == 1 ? " is not" : " are not"),
               files.begin()->second.job);
  }
  return exit_ok;
}

}  // namespace backstay::bin
