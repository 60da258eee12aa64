// A session's restart out of durable.dir.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "client/redistribution.h"
#include "client/restart_loop.h"
#include "client/targets.h"
#include "strategy/file_versions.h"
#include "strategy/session.h"

namespace backstay::strategy {

Result<VersionNumber> FileSession::restart() {
  (void)settle_tell();
  FileVersions versions(group_, *directory_);
  std::optional<client::SessionTarget> target;
  const client::RestartPlan plan{
      .target = [&]() -> client::ObjectTarget& {
        return target.emplace(regions_, no_files_, job_.origin);
      },
      .redistribute = [&](VersionNumber version, RunId run, std::uint32_t saved_ranks,
                          bool& in_part) -> Status {
        auto record = good_record(*directory_, version, run);
        BACKSTAY_TRY(group_.agree(record.ok() ? Status() : Status(record.error())));
        FileObjects objects(directory_->tier(), std::move(*record));
        return client::Redistribution(group_, objects, regions_, job_.origin, version, saved_ranks)
            .run(in_part);
      },
      .make_ready = {}};
  bool touched = false;
  client::RestartLoop loop(group_, versions, plan);
  events_.append("restart_begin", {{"from", "durable"}});
  const auto found = loop.run(touched);
  if (!found.ok()) {
    const Error& why = found.error();
    const bool refused = why.code() == Code::mismatch || why.code() == Code::rank_count;
    if (why.code() != Code::none) events_.append(refused ? "refused" : "restart_failed", {}, why);
    return touched ? client::of_undefined_regions(why)
                   : client::as_told(why, job_.origin, job_.config.job.name, touched);
  }
  events_.append("restored", {{"version", *found}, {"from", "durable"}});
  if (version_ == 0 && had_finished_) client::tell_finished(job_.config.job.name, *found);
  version_ = *found;
  newest_used_ = std::max(newest_used_, *found);
  due_->restarted();
  return version_;
}

}  // namespace backstay::strategy
