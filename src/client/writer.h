// A process that is no rank hands the bytes of its files to the agent of its node, one version
// after another (docs/protocol/agent.md, "Writers"; docs/format/files.md).
//
//   begin        a new version; the agent chooses its number
//   append ...   the payload, in the order of writing: the table's extents name it by its offset
//   end          table and footer behind it; the version is captured, or given up
//   wait         until the version has a level
//
// One thread at a time. Nothing here prints, throws, ends the process, handles a signal or leaves
// anything to be done at exit; descriptors close on exec. Works in a program without MPI, and that
// is no rank.
//
// fork(): the child's copy is of no use to it: every call returns state, the destructor says
// nothing to the agent, and the parent goes on undisturbed. A child that writes joins anew.
//
// The agent's death: every call returns agent_lost from then on; what had no level local is gone.
// The caller decides; it may join again and write anew what it still has.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/hold.h"
#include "base/ids.h"
#include "base/result.h"
#include "client/connection.h"
#include "client/fork_mark.h"
#include "client/pool_fill.h"
#include "client/start.h"
#include "format/files.h"

namespace backstay::client {

struct WriterSettings {
  AgentAddress agent;
  std::string job;  // whose process it is
  wire::Join join;  // to the job of its files, files_job_name()
};
// As a rank of the job `config.job.name` would have them; `config_file` is absolute, may be "".
WriterSettings writer_settings(const Config& config, const std::string& config_file);

class Writer {
 public:
  // Connects to the agent of this node and starts one where none runs. Blocks until it answers.
  // Errors: agent_lost, timeout, busy (another agent has the job), state (the name is a job of
  // ranks), and what an agent refuses besides: permission, io, config, protocol, invalid.
  static Result<std::unique_ptr<Writer>> join(const WriterSettings& settings);
  // Leaves. A version in the making is given up.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Begins a version. `bytes`: about so many will be appended, where that is known: buffers are
  // then asked for together rather than more and more of them. Errors: state (one is begun
  // already), too_large (no number is left), agent_lost.
  Status begin(std::uint64_t bytes = 0);
  // The version that is begun; 0: none.
  VersionNumber begun() const { return fill_.version(); }
  // Copies `bytes` bytes behind those before. Blocks while the pool is full. After an error the
  // version is given up and abandon() is not needed; agent_lost: the writer is over.
  // Errors: state (none is begun), the agent's reason for giving it up (no_space, io ...),
  // agent_lost.
  Status append(const void* data, std::size_t bytes);
  // Appended to the version so far: what an extent of the next append() names as its offset.
  std::uint64_t payload_bytes() const { return payload_bytes_; }
  // Ends the version with the table of its files, in any order, and blocks until it is captured:
  // from then on it survives this process. Errors: those of append; invalid (the table: a path that
  // the format does not allow, or that is there twice, an extent outside of file or payload; the
  // version is then still open).
  Result<VersionNumber> end(std::vector<format::CapturedFile> files);
  // Gives up the version that was begun; ok where there is none. Errors: agent_lost.
  Status abandon();

  // Blocks until the version has the level, or cannot get it (the agent's reason), or for
  // `timeout_s` (timeout: it still may get it; negative: without limit). Only while none is begun.
  Status wait(VersionNumber version, Level level, double timeout_s);

  // Blocks until the newest captured bytes of a file are at its own path: of `path`; of all below
  // it where it ends in "/"; of all files of this node's job where it is empty. A version that is
  // begun does not count. Only while none is begun. Errors: why a file cannot be brought to its
  // path (it stays in the store, and is tried again); timeout; agent_lost. `kept` gets the reason
  // where the newest file of one path stays in the store for good, else "".
  Status settle(const std::string& path, double timeout_s, std::string* kept = nullptr);

  // The file of this version that was to come to `from` comes to `to`, where it counts as of
  // `placed_ns` (docs/protocol/home.md). Only of a version of run(), unless `to` is empty. Errors:
  // nothing has changed (busy: the file is on its way; state, not_found: it is at its path, or
  // gone); agent_lost.
  Status move(HeldVersion version, const std::string& from, const std::string& to,
              std::uint64_t placed_ns);

  // For the job's event log: what programs have written since the call before. Not waited for.
  // Errors: agent_lost.
  Status note(const wire::NoteWrites& written);

  RunId run() const { return agent_->welcomed().run; }
  std::uint32_t number() const { return agent_->welcomed().writer; }

 private:
  static constexpr std::uint32_t buffers_max = 8;
  explicit Writer(std::unique_ptr<Connection> agent) : agent_(std::move(agent)) {}

  Status ready(bool in_version) const;
  // What is begun is given up where `done` is an error.
  Status or_give_up(Status done);
  Status open(std::uint32_t asked);
  Status put(Bytes from);
  Status put_tail(Bytes tail);
  Status finish();

  std::unique_ptr<Connection> agent_;
  ForkMark mark_;
  std::uint64_t payload_bytes_ = 0;
  PoolFill fill_{{buffers_max, /*asks_ahead=*/true, "writer.more", "writer.filled"}};
};

}  // namespace backstay::client
