#include "strategy/strategy.h"

#include <fmt/format.h>

#include "strategy/collective.h"
#include "strategy/file_per_process.h"
#include "strategy/groups.h"
#include "strategy/writers.h"

namespace backstay::strategy {

namespace {

using Made = Result<std::unique_ptr<Strategy>>;

Error wrong(const std::string& what) { return {Code::config, what}; }

Made file_per_process(const Ranks& ranks) {
  return std::unique_ptr<Strategy>(std::make_unique<FilePerProcess>(ranks));
}

Made collective(const Ranks& ranks) {
  const auto files = std::max(ranks.job.config.strategy.files, 1U);
  const auto all = static_cast<std::uint32_t>(ranks.group.ranks());
  if (files > all) {
    return wrong(
        fmt::format("strategy.files is {}, and the job has {} ranks: it is at most their "
                    "number",
                    files, all));
  }
  return std::unique_ptr<Strategy>(std::make_unique<Collective>(ranks, files));
}

Made writers(const Ranks& ranks) {
  const Config::Strategy& config = ranks.job.config.strategy;
  const auto all = static_cast<std::uint32_t>(ranks.group.ranks());
  const auto each = std::min(config.ranks_per_writer, all);
  const auto groups =
      static_cast<std::uint32_t>(groups_of(ranks.group.ranks(), static_cast<int>(each)));
  const auto files = config.files == 0 ? groups : config.files;
  if (files > groups) {
    return wrong(
        fmt::format("strategy.files is {}, and {} ranks with strategy.ranks_per_writer {} "
                    "have {} writers: it is at most their number",
                    files, all, config.ranks_per_writer, groups));
  }
  if (files == groups) return std::unique_ptr<Strategy>(std::make_unique<Writers>(ranks, each));
  return std::unique_ptr<Strategy>(std::make_unique<CollectiveWriters>(ranks, each, files));
}

struct Row {
  std::string_view name;
  bool needs_transport;
  Made (*make)(const Ranks& ranks);
};
constexpr Row rows[] = {{"file_per_process", false, file_per_process},
                        {"collective", true, collective},
                        {"writers", true, writers}};

// "key=value;key=value".
Status check_hints(const std::string& hints) {
  for (std::size_t at = 0; at < hints.size();) {
    const std::size_t end = std::min(hints.find(';', at), hints.size());
    const std::string hint = hints.substr(at, end - at);
    const std::size_t is = hint.find('=');
    if (is == std::string::npos || is == 0 || is + 1 == hint.size()) {
      return wrong(fmt::format("strategy.hints: \"{}\" is no key=value", hint));
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
    if (!row.needs_transport || ranks.transport != nullptr) return row.make(ranks);
    return Error(
        Code::unsupported,
        fmt::format("strategy.name = \"{}\" needs MPI, which a program in C, C++ or Fortran "
                    "gives with backstay_init_mpi; this one can use file_per_process",
                    config.name));
  }
  return Error(Code::internal, "strategy.name has no row: " + config.name);
}

store::VersionInfo info_of(const Ranks& ranks, const NewVersion& version, std::uint32_t part,
                           std::uint32_t parts) {
  return {.version = version.number,
          .run = ranks.job.run,
          .node = static_cast<NodeId>(part),
          .nodes = parts,
          .ranks = static_cast<std::uint32_t>(ranks.group.ranks()),
          .chunk_bytes_max = piece_bytes_of(ranks.job.config)};
}

}  // namespace backstay::strategy
