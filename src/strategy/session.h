// A program's session where no agent runs: the ranks write each version into durable.dir, and read
// it back, inside of the program's calls (docs/format/durable.md, "Versions that the ranks write").
//
// checkpoint() returns once the version is durable, or does not exist, on all ranks alike; with
// writers that write on behind it, on each rank once its own bytes were received. Then the version
// has no level until it is durable, as a dead writer takes its group's bytes along; wait(),
// finish() and the next checkpoint tell how it ended. Routed files and streams need an agent.
// Threads and errors: as of client/program_session.h.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "client/due.h"
#include "client/files.h"
#include "client/job_start.h"
#include "client/program_session.h"
#include "client/regions.h"
#include "client/snapshot.h"
#include "client/streams.h"
#include "strategy/directory.h"
#include "strategy/events.h"
#include "strategy/recorder.h"
#include "strategy/strategy.h"

namespace backstay::strategy {

class FileSession final : public client::ProgramSession {
 public:
  // Collective. `transport`: may be null, else outlives the session. Errors: those of
  // Directory::open() and make_strategy().
  static Result<std::unique_ptr<client::ProgramSession>> start(
      const client::Group& group, client::JobStart job,
      const backstay_transport* transport = nullptr, const OpenTier& open_tier = open_files);
  ~FileSession() override;
  FileSession(const FileSession&) = delete;
  FileSession& operator=(const FileSession&) = delete;

  Status protect(const char* name, void* data, const backstay_array* array,
                 backstay_type type) override;
  Status unprotect(const std::string& name) override { return regions_.remove(name); }
  Result<std::string> route_file(const std::string& name, std::size_t path_bytes) override;
  Result<client::StreamSession> streams() override;

  bool due() override { return due_->call(); }
  bool stop_requested() const override { return due_->stop_requested(); }
  Status checkpoint() override;
  Result<VersionNumber> restart() override;
  Status finish() override;
  // Its destruction gives everything up that its process holds.
  void leave_silently(Where where) override {
    if (where == Where::in_child) directory_->leave_to_parent();
  }

  VersionNumber version() const override { return version_; }
  Status test(VersionNumber version, Level& level) override;
  Status wait(VersionNumber version, Level level, double timeout_s) override;
  Status read_region(VersionNumber version, const std::string& name, void* data,
                     std::size_t bytes) override;

  const Config& config() const override { return job_.config; }

 private:
  class Signals;  // due()'s view of this process

  FileSession(const client::Group& group, client::JobStart job,
              std::unique_ptr<Directory> directory, const backstay_transport* transport);
  bool first() const { return group_.rank() == 0; }
  Error needs_agent(const std::string& what) const;
  Status take_version();
  Status begin(VersionNumber version, std::uint64_t captured_ns);
  void tell_rest(const char* what, const Status& removed) const;
  bool comes(VersionNumber version, const Result<format::CommitRecord>& record) const;
  Status settle();
  Status settle_tell();

  const client::Group group_;
  const client::JobStart job_;
  std::unique_ptr<Directory> directory_;
  client::Regions regions_;
  const client::RoutedFiles no_files_{""};
  const client::Streams no_streams_;
  const Events events_;
  const std::optional<Transport> transport_;
  const Ranks ranks_;
  std::unique_ptr<Strategy> strategy_;
  // A version whose end is not known yet. Rank 0 has a recorder, which ends before the strategy.
  struct Pending {
    VersionNumber version;
    RankReport report;
    Status written;
  };
  std::optional<Pending> pending_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Signals> signals_;
  std::unique_ptr<client::Due> due_;
  bool had_finished_ = false;      // the run before
  VersionNumber version_ = 0;      // newest recorded, handed over or restarted from
  VersionNumber newest_used_ = 0;  // the same on all ranks; the next is one more
};

}  // namespace backstay::strategy
