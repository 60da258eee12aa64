// What an agent must not bring any more (docs/protocol/collector.md, "Renames").
#include <unistd.h>

#include <vector>

#include "base/log.h"
#include "capture/collector/collector.h"

namespace backstay::files {

// An agent that was not told of a rename may have brought the file, or be at it. No file with these
// bytes is to stay but at the path `stays`. Precondition: wait_for_tables().
Status Collector::drop(const PendingFile::Elsewhere& one, const std::string& stays,
                       client::Writer& writer) {
  const Status dropped = writer.move(one.version, one.path, "", 0);
  if (!dropped.ok() && dropped.error().code() == Code::agent_lost) return dropped;
  // Another file may have as many bytes and the same time of change.
  const bool brought = !dropped.ok() && dropped.error().code() == Code::state;
  if (brought && one.path != stays && one.stands()) (void)::unlink(one.path.c_str());
  return {};
}

// The agent's mark must say that the file is dropped before the one that stays is settled, as
// nothing tells an agent that is started later.
Status Collector::drop_and_mark(const PendingFile::Elsewhere& one, const std::string& stays,
                                client::Writer& writer) {
  BACKSTAY_TRY(drop(one, stays, writer));
  return writer.settle(one.path, -1);
}

Status Collector::drop_elsewhere(PendingFile& file, client::Writer& writer) {
  std::vector<PendingFile::Elsewhere> all;
  {
    const Lock lock(mutex_);
    all = file.elsewhere;
  }
  std::erase_if(all, [&](const auto& one) { return one.told == writer.run(); });
  if (!all.empty()) (void)wait_for_tables(file.path, writer);
  for (const PendingFile::Elsewhere& one : all) {
    const Status marked = drop_and_mark(one, file.path, writer);
    if (!marked.ok() && marked.error().code() == Code::agent_lost) return marked;
  }
  const Lock lock(mutex_);
  for (PendingFile::Elsewhere& one : file.elsewhere) one.told = writer.run();
  return {};
}

// We have brought it: the agent, or one after it, would bring these bytes once more, perhaps after
// the program has removed the file.
void Collector::drop_placed(PendingFile& file) {
  const Status dropped = drop_here(file, file.path);
  if (!dropped.ok()) warn_of_return(file.path, dropped.error());
}

// The file is at `path`, and no agent is to bring it any more.
Status Collector::drop_here(PendingFile& file, const std::string& path) {
  return writers_.with([&](client::Writer& writer) -> Status {
    BACKSTAY_TRY(drop_elsewhere(file, writer));
    PendingFile::Elsewhere here = file.elsewhere_of();
    if (writer.run() == file.run) here.path = path;
    (void)wait_for_tables(path, writer);
    return drop_and_mark(here, path, writer);
  });
}

void Collector::warn_of_return(const std::string& path, const Error& why) const {
  spdlog::warn("an agent may bring a file again job={} file={} why=\"{}\"", job_, path,
               why.to_string());
}

}  // namespace backstay::files
