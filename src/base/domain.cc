#include "base/domain.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "base/machine.h"

namespace backstay {

namespace {

Status check_label(const std::string& label, const std::string& where) {
  if (label.size() <= domain_bytes_max) return {};
  return Error(Code::config, fmt::format("{}the domain \"{}\" has more than {} characters", where,
                                         label, domain_bytes_max));
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream text(line.substr(0, line.find('#')));
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

Result<std::map<std::string, std::string>> read_domains(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) {  // opens, and cannot be read
    return Error(Code::config, "protect.domain_file " + path + " is a directory, not a file");
  }
  std::ifstream file(path);
  if (!file) {
    return Error(Code::config,
                 errno_error("open protect.domain_file " + path, errno).message() +
                     ": it must be there on every node; leave the key empty to have each node "
                     "fail alone",
                 errno);
  }
  std::map<std::string, std::string> domains;
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    const std::string where = fmt::format("{}:{}: ", path, ++number);
    const auto words = words_of(line);
    if (words.empty()) continue;
    if (words.size() != 2) {
      return Error(Code::config, fmt::format("{}a line is a host and its domain, not {} words",
                                             where, words.size()));
    }
    BACKSTAY_TRY(check_label(words[1], where));
    const auto [known, is_new] = domains.emplace(words[0], words[1]);
    if (!is_new && known->second != words[1]) {
      return Error(Code::config, fmt::format("{}host {} is in domain {} already", where, words[0],
                                             known->second));
    }
  }
  if (file.bad()) return errno_error("read protect.domain_file " + path, errno);
  return domains;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::vector<std::string> split_at_dots(const std::string& text) {
  std::istringstream parts(text);
  std::vector<std::string> out;
  for (std::string part; std::getline(parts, part, '.');) out.push_back(part);
  return out;
}

// The lowest switch, or the block, to which Slurm says this task's node is attached ("s0.s4.n7",
// "switch.switch.node"). "" if it names none, or if the variables describe another node: launchers
// that start ranks without Slurm pass on those of the first node.
std::string switch_of(const std::string& host) {
  const std::vector<std::string> levels = split_at_dots(variable("SLURM_TOPOLOGY_ADDR_PATTERN"));
  const std::vector<std::string> names = split_at_dots(variable("SLURM_TOPOLOGY_ADDR"));
  if (levels.size() < 2 || levels.back() != "node" || names.size() < levels.size()) return {};
  const std::size_t lowest = levels.size() - 2;
  if (levels[lowest] != "switch" && levels[lowest] != "block") return {};
  if (short_name(host) != names[lowest + 1]) return {};
  return names[lowest].size() <= domain_bytes_max ? names[lowest] : std::string();
}

}  // namespace

Result<std::string> domain_of(const Config& config, const std::string& host) {
  const std::string& label = config.protect.domain;
  const std::string& path = config.protect.domain_file;
  if (!label.empty()) {
    BACKSTAY_TRY(check_label(label, "protect.domain: "));
    return label;
  }
  if (path.empty()) return switch_of(host);
  BACKSTAY_ASSIGN(const auto domains, read_domains(path));
  for (const std::string& name : {host, short_name(host)}) {
    if (const auto found = domains.find(name); found != domains.end()) return found->second;
  }
  return std::string();
}

}  // namespace backstay
