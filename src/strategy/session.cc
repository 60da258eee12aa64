#include "strategy/session.h"

#include <fmt/format.h>

#include <utility>

#include "base/attempt.h"
#include "base/clock.h"
#include "base/tell.h"
#include "client/region_fetch.h"
#include "client/signals.h"
#include "client/stream_session.h"
#include "strategy/file_versions.h"
#include "strategy/gather.h"

namespace backstay::strategy {

// Nobody else can ask: no agent takes requests.
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

Result<std::unique_ptr<client::ProgramSession>> FileSession::start(const client::Group& group,
                                                                   client::JobStart job,
                                                                   const OpenTier& open_tier) {
  BACKSTAY_ASSIGN(auto directory, Directory::open(group, job, open_tier));
  return std::unique_ptr<client::ProgramSession>(
      new FileSession(group, std::move(job), std::move(directory)));
}

FileSession::FileSession(const client::Group& group, client::JobStart job,
                         std::unique_ptr<Directory> directory)
    : group_(group),
      job_(std::move(job)),
      directory_(std::move(directory)),
      events_(group.rank() == 0, job_.config.durable.dir + "/" + job_.config.job.name,
              job_.config.job.name, job_.run),
      signals_(std::make_unique<Signals>()),
      due_(
          std::make_unique<client::Due>(job_.config.checkpoint, group_, system_clock(), *signals_)),
      newest_used_(directory_->newest()) {
  if (first()) had_finished_ = events_.last_run_finished();
  events_.run_begins(group_.ranks(), newest_used_);
}

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

Status FileSession::take_version() {
  std::optional<client::Snapshot> snapshot;
  const Status ready = attempt([&]() -> Status {
    if (!buffers_) buffers_.emplace(job_.config);
    BACKSTAY_ASSIGN(auto made,
                    client::Snapshot::of(regions_, no_files_, job_.origin.notes(), no_streams_));
    snapshot.emplace(std::move(made));
    return {};
  });
  BACKSTAY_TRY(group_.agree(ready));
  due_->checkpoint_begins();
  // The number is used up in any case, so that one number never means two versions.
  const VersionNumber version = ++newest_used_;
  events_.capture_begins(version);
  const Status outcome = save(version, *snapshot);
  if (outcome.ok()) version_ = version;
  if (!outcome.ok()) events_.capture_failed(version, outcome.error());
  if (!first()) return outcome;
  const Status cleared =
      outcome.ok() ? directory_->end(job_.config.durable.keep) : directory_->take_back(version);
  if (!cleared.ok()) {
    tell_user(fmt::format("{} stays in {}: {}", outcome.ok() ? "an older version" : "a rest",
                          job_.config.durable.dir, cleared.error().message()));
  }
  return outcome;
}

// No rank writes any more when it returns.
Status FileSession::save(VersionNumber version, client::Snapshot& snapshot) {
  BACKSTAY_TRY(group_.agree(first() ? directory_->begin() : Status()));
  std::uint64_t captured_ns = system_clock().wall_ns();
  BACKSTAY_TRY(group_.broadcast(&captured_ns, sizeof captured_ns));
  BACKSTAY_ASSIGN(const auto reports, write(version, captured_ns, snapshot));
  const auto ranks = static_cast<std::uint32_t>(group_.ranks());
  format::CommitRecord record{.job = directory_->job(),
                              .level = Level::durable,
                              .version = version,
                              .run = job_.run,
                              .nodes = ranks,
                              .ranks = ranks,
                              .captured_ns = captured_ns,
                              .committed_ns = system_clock().wall_ns()};
  for (const RankReport& report : reports) {
    record.payload_bytes += report.payload_bytes;
    record.manifests_sum += report.digest;
  }
  BACKSTAY_TRY(group_.agree(first() ? directory_->record(record) : Status()));
  events_.durable(version, reports);
  return {};
}

Result<std::vector<RankReport>> FileSession::write(VersionNumber version, std::uint64_t captured_ns,
                                                   client::Snapshot& snapshot) {
  const auto rank = static_cast<Rank>(group_.rank());
  const auto ranks = static_cast<std::uint32_t>(group_.ranks());
  RankReport mine{.bytes = snapshot.object_bytes(), .begin_ns = system_clock().wall_ns()};
  const Status written = attempt([&] {
    store::PartWriter part(directory_->tier(), directory_->job(),
                           {.version = version,
                            .run = job_.run,
                            .node = rank,
                            .nodes = ranks,
                            .ranks = ranks,
                            .chunk_bytes_max = buffers_->piece_bytes()});
    return write_part(part, rank, snapshot, captured_ns, *buffers_, mine);
  });
  mine.end_ns = system_clock().wall_ns();
  BACKSTAY_TRY(group_.agree(written));
  return gather(group_, mine);
}

// --- questions -----------------------------------------------------------------------------------

Status FileSession::test(VersionNumber version, Level& level) {
  level = Level::none;
  BACKSTAY_TRY(good_record(*directory_, version));
  level = Level::durable;
  return {};
}

// A version is durable from its first moment, so there is nothing to wait for.
Status FileSession::wait(VersionNumber version, Level, double) {
  Level reached = Level::none;
  return test(version, reached);
}

Status FileSession::read_region(VersionNumber version, const std::string& name, void* data,
                                std::size_t bytes) {
  BACKSTAY_ASSIGN(auto record, good_record(*directory_, version));
  FileObjects objects(directory_->tier(), std::move(record));
  return client::fetch_region(*objects.of(static_cast<Rank>(group_.rank())), name, data, bytes);
}

Status FileSession::finish() {
  events_.run_ends(stop_requested());
  return group_.agree({});
}

}  // namespace backstay::strategy
