// The strategies by name: rows of a table.
#include <fmt/format.h>

#include <algorithm>

#include "strategy/layout.h"
#include "strategy/own_files.h"
#include "strategy/shared_files.h"
#include "strategy/strategy.h"

namespace backstay::strategy {

namespace {

Error wrong(const std::string& what) { return {Code::config, what}; }

struct Row {
  std::string_view name;
  bool groups;  // several ranks have one writer
  bool shares;  // writers may share a file
};
constexpr Row rows[] = {
    {"file_per_process", false, false}, {"collective", false, true}, {"writers", true, true}};

Result<std::unique_ptr<Strategy>> make(const Ranks& ranks, const Row& row) {
  const Config::Strategy& config = ranks.job.config.strategy;
  const int all = ranks.group.ranks();
  const int each = row.groups ? static_cast<int>(std::min<std::uint64_t>(
                                    config.ranks_per_writer, static_cast<std::uint64_t>(all)))
                              : 1;
  const auto writers = static_cast<std::uint32_t>(ceil_div(all, each));
  const std::uint32_t usual = row.shares && !row.groups ? 1 : writers;
  const std::uint32_t files = row.shares && config.files != 0 ? config.files : usual;
  if (files > writers) {
    return wrong(
        fmt::format("strategy.files is {}, and {} ranks have {} writers: a version has at "
                    "most one file for each",
                    files, all, writers));
  }
  std::unique_ptr<Strategy> made;
  const bool together = files != writers || (row.shares && !row.groups);
  if (together && ranks.job.config.durable.dir.find(':') != std::string::npos) {
    return wrong(
        fmt::format("durable.dir is {}: some MPI-IO takes what is before a colon for a "
                    "kind of file system; give it another name, or choose "
                    "file_per_process",
                    ranks.job.config.durable.dir));
  }
  if (!together) {
    made = std::make_unique<OwnFiles>(ranks, each, /*behind=*/row.groups);
  } else {
    made = std::make_unique<SharedFiles>(ranks, each, files);
  }
  return made;
}

// MPI aborts the program if a hint is longer. These are the limits of Open MPI, the lowest.
constexpr std::size_t hint_key_max = 35;
constexpr std::size_t hint_value_max = 255;

// "key=value;key=value".
Status check_hints(const std::string& hints) {
  for (std::size_t at = 0; at < hints.size();) {
    const std::size_t end = std::min(hints.find(';', at), hints.size());
    const std::string hint = hints.substr(at, end - at);
    const std::size_t is = hint.find('=');
    if (is == std::string::npos || is == 0 || is + 1 == hint.size()) {
      return wrong(fmt::format("strategy.hints: \"{}\" is no key=value", hint));
    }
    if (is > hint_key_max || hint.size() - is - 1 > hint_value_max) {
      return wrong(
          fmt::format("strategy.hints: \"{}\" is too long for MPI: a key has at most {} "
                      "characters, a value {}",
                      hint, hint_key_max, hint_value_max));
    }
    at = end + 1;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Strategy>> make_strategy(const Ranks& ranks) {
  const Config::Strategy& config = ranks.job.config.strategy;
  BACKSTAY_TRY(check_hints(config.hints));
  for (const Row& row : rows) {
    if (row.name != config.name) continue;
    if (!row.shares || ranks.transport != nullptr) return make(ranks, row);
    return Error(
        Code::unsupported,
        fmt::format("strategy.name = \"{}\" needs MPI, which a program in C, C++ or Fortran "
                    "gives with backstay_init_mpi; this one can use file_per_process",
                    config.name));
  }
  return Error(Code::internal, "strategy.name has no row: " + config.name);
}

}  // namespace backstay::strategy
