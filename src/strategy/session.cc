#include "strategy/session.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/attempt.h"
#include "base/clock.h"
#include "base/machine.h"
#include "base/tell.h"
#include "client/region_fetch.h"
#include "client/signals.h"
#include "client/stream_session.h"
#include "strategy/file_versions.h"
#include "strategy/gather.h"

namespace backstay::strategy {

// Signals are the only way to ask for a checkpoint, as no agent takes requests.
class FileSession::Signals final : public client::RequestSource {
 public:
  std::uint32_t requests() override { return 0; }
  bool stop_requested() override { return false; }
  bool checkpoint_signalled() override { return client::checkpoint_signalled(); }
  bool stop_signalled() override { return client::stop_signalled(); }
  void clear_checkpoint_signal() override { client::clear_checkpoint_signal(); }
  // Launchers hand a signal to all ranks: rank 0 has it too.
  bool forward(bool) override { return true; }
};

Result<std::unique_ptr<client::ProgramSession>> FileSession::start(
    const client::Group& group, client::JobStart job, const backstay_transport* transport,
    const OpenTier& open_tier) {
  BACKSTAY_TRY(group.broadcast(&job.config.pool.buffer_mib, sizeof job.config.pool.buffer_mib));
  BACKSTAY_ASSIGN(auto directory, Directory::open(group, job, open_tier));
  std::unique_ptr<FileSession> session(
      new FileSession(group, std::move(job), std::move(directory), transport));
  BACKSTAY_ASSIGN(session->strategy_, make_strategy(session->ranks_));
  session->events_.append("run_begin", {{"ranks", group.ranks()},
                                        {"nodes", 1},
                                        {"host", host_name()},
                                        {"newest", session->newest_used_},
                                        {"release", BACKSTAY_VERSION}});
  return std::unique_ptr<client::ProgramSession>(std::move(session));
}

FileSession::FileSession(const client::Group& group, client::JobStart job,
                         std::unique_ptr<Directory> directory, const backstay_transport* transport)
    : group_(group),
      job_(std::move(job)),
      directory_(std::move(directory)),
      events_(group.rank() == 0, job_.config.durable.dir + "/" + job_.config.job.name,
              job_.config.job.name, job_.run),
      transport_(transport == nullptr
                     ? std::nullopt
                     : std::optional<Transport>(std::in_place, group_, *transport)),
      ranks_{group_, job_, *directory_, transport_ ? &*transport_ : nullptr},
      signals_(std::make_unique<Signals>()),
      due_(
          std::make_unique<client::Due>(job_.config.checkpoint, group_, system_clock(), *signals_)),
      had_finished_(first() && events_.last_run_finished()),
      newest_used_(directory_->newest()) {}

FileSession::~FileSession() = default;

Error FileSession::needs_agent(const std::string& what) const {
  return {Code::unsupported,
          fmt::format("{} need an agent on each node: strategy.name is \"{}\", set it to \"agent\"",
                      what, job_.config.strategy.name)};
}

Status FileSession::protect(const char* name, void* data, const backstay_array* array,
                            backstay_type type) {
  BACKSTAY_ASSIGN(client::ProtectedRegion region, client::describe_region(name, data, array, type));
  return regions_.add(std::move(region));
}

Result<std::string> FileSession::route_file(const std::string&, std::size_t) {
  return needs_agent("routed files");
}

Result<client::StreamSession> FileSession::streams() { return needs_agent("streams"); }

// --- checkpoint ----------------------------------------------------------------------------------

Status FileSession::checkpoint() {
  const Status taken = take_version();
  taken.ok() ? due_->checkpoint_captured() : due_->checkpoint_failed();
  return taken;
}

// The number is used up in any case, so that one number never means two versions.
Status FileSession::take_version() {
  const Clock& clock = system_clock();
  const VersionNumber version = ++newest_used_;
  RankReport mine{.begin_ns = clock.wall_ns()};
  (void)settle_tell();  // of the version before
  mine.settle_ns = clock.wall_ns() - mine.begin_ns;
  std::uint64_t captured_ns = clock.wall_ns();
  std::optional<client::Snapshot> snapshot;
  Status outcome = group_.agree(attempt([&]() -> Status {
    BACKSTAY_ASSIGN(auto made,
                    client::Snapshot::of(regions_, no_files_, job_.origin.notes(), no_streams_));
    snapshot.emplace(std::move(made));
    return first() ? begin(version, captured_ns) : Status();
  }));
  if (outcome.ok()) outcome = group_.broadcast(&captured_ns, sizeof captured_ns);
  if (outcome.ok()) {
    due_->checkpoint_begins();
    mine.bytes = snapshot->object_bytes();
    outcome = strategy_->write({version, captured_ns}, *snapshot, mine);
  }
  mine.end_ns = clock.wall_ns();
  pending_ = Pending{version, mine, outcome};
  if (!outcome.ok() || !strategy_->writes_behind()) return settle();
  version_ = version;
  return {};
}

// Rank 0 starts the thread that records the version before any rank writes.
Status FileSession::begin(VersionNumber version, std::uint64_t captured_ns) {
  events_.append("capture_begin", {{"version", version}});
  BACKSTAY_TRY(directory_->begin(version));
  const format::CommitRecord record{.job = directory_->job(),
                                    .level = Level::durable,
                                    .version = version,
                                    .run = job_.run,
                                    .nodes = strategy_->files(),
                                    .ranks = static_cast<std::uint32_t>(group_.ranks()),
                                    .captured_ns = captured_ns};
  recorder_ = std::make_unique<Recorder>(*directory_, record, [this, version] {
    events_.append("durable", {{"version", version}});
    tell_rest("an older version", directory_->end(job_.config.durable.keep));
  });
  return {};
}

// Collective. Waits for the last version and tells how it ended.
Status FileSession::settle() {
  if (!pending_) return {};
  Pending pending = *std::exchange(pending_, std::nullopt);
  Status outcome = pending.written;
  if (outcome.ok() && strategy_->writes_behind()) outcome = strategy_->settle(pending.report);
  Status recorded;
  if (first()) recorded = recorder_ == nullptr ? pending.written : recorder_->finish();
  recorded = group_.agree(recorded);
  recorder_.reset();
  if (recorded.ok() || outcome.ok()) outcome = recorded;  // the record is the truth
  const VersionNumber version = pending.version;
  const auto reports = gather(group_, ranks_.transport, pending.report);
  if (outcome.ok()) version_ = version;
  if (outcome.ok() && reports.ok()) events_.captured(version, *reports);
  if (!outcome.ok()) events_.append("capture_failed", {{"version", version}}, outcome.error());
  if (outcome.ok()) return {};
  if (first()) tell_rest("a rest", directory_->take_back(version));
  return Error(outcome.error().code(),
               fmt::format("version {} does not exist: {}", version, outcome.error().message()));
}

void FileSession::tell_rest(const char* what, const Status& removed) const {
  if (removed.ok()) return;
  tell_user(
      fmt::format("{} stays in {}: {}", what, job_.config.durable.dir, removed.error().message()));
}

Status FileSession::settle_tell() {
  const Status outcome = settle();
  if (!outcome.ok() && first()) tell_user(outcome.error().message());
  return outcome;
}

// --- questions -----------------------------------------------------------------------------------

bool FileSession::comes(VersionNumber version, const Result<format::CommitRecord>& record) const {
  return pending_ && pending_->version == version && !record.ok() &&
         record.error().code() == Code::not_found;
}

Status FileSession::test(VersionNumber version, Level& level) {
  level = Level::none;
  const auto record = good_record(*directory_, version);
  if (record.ok()) level = Level::durable;
  if (!comes(version, record)) return record.ok() ? Status() : Status(record.error());
  BACKSTAY_TRY(strategy_->so_far());
  if (const auto why = directory_->given_up(version)) return *why;
  return recorder_ == nullptr ? Status() : recorder_->so_far();
}

// Every rank alone: it looks into the directory.
Status FileSession::wait(VersionNumber version, Level level, double timeout_s) {
  constexpr int longest_pause_ms = 50;
  const std::uint64_t deadline = deadline_in(timeout_s);
  for (int pause_ms = 1;; pause_ms = std::min(2 * pause_ms, longest_pause_ms)) {
    Level reached = Level::none;
    BACKSTAY_TRY(test(version, reached));
    if (reached == Level::durable) return {};
    if (system_clock().monotonic_ns() >= deadline) break;
    ::poll(nullptr, 0, pause_ms);
  }
  return Error(Code::timeout,
               fmt::format("version {} has not reached level {} within {} s; it still may: writers "
                           "have its bytes, and it is durable once all have written them",
                           version, level_name(level), timeout_s));
}

Status FileSession::read_region(VersionNumber version, const std::string& name, void* data,
                                std::size_t bytes) {
  auto record = good_record(*directory_, version);
  if (comes(version, record)) {
    return Error(
        record.error().code(),
        fmt::format("version {} is on its way: backstay_wait() for durable first", version));
  }
  BACKSTAY_TRY(record.ok() ? Status() : Status(record.error()));
  FileObjects objects(directory_->tier(), std::move(*record));
  return client::fetch_region(*objects.of(static_cast<Rank>(group_.rank())), name, data, bytes);
}

Status FileSession::finish() {
  const Status settled = settle();
  events_.append("run_end", {{"how", stop_requested() ? "stopped" : "finished"}});
  return settled;
}

}  // namespace backstay::strategy
