#include "strategy/directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "base/machine.h"
#include "client/run_mark.h"
#include "format/names.h"
#include "store/catalog.h"
#include "store/retention.h"
#include "store/version_copy.h"
#include "tier/dir.h"

namespace backstay::strategy {

namespace {

constexpr std::size_t live_bytes_max = 300;
constexpr std::size_t mark_bytes_max = 4096;

Status check_directory(const std::string& dir) {
  std::error_code failure;
  if (std::filesystem::is_directory(dir, failure)) return {};
  return Error(Code::config,
               fmt::format("durable.dir is {}, which is no directory on {}: make it, or "
                           "mount its file system",
                           dir, host_name()));
}

VersionNumber newest_of(const std::vector<store::StoredVersion>& versions) {
  return versions.empty() ? 0 : versions.back().version;
}

}  // namespace

Result<std::unique_ptr<tier::Tier>> open_files(const Config& config, const std::string& dir,
                                               const std::string& writer) {
  tier::DirOptions options;
  options.root = dir;
  options.writer = writer;
  return tier::open_dir_tier(config.writer, options);
}

Result<std::unique_ptr<Directory>> Directory::open(const client::Group& group,
                                                   const client::JobStart& job,
                                                   const OpenTier& open_tier) {
  const Config& config = job.config;
  if (config.durable.dir.empty()) {
    return Error(Code::config, fmt::format("strategy.name = \"{}\" writes into durable.dir, which "
                                           "is not set: name a directory that all ranks see "
                                           "(BACKSTAY_DURABLE_DIR)",
                                           config.strategy.name));
  }
  BACKSTAY_TRY(group.agree(check_directory(config.durable.dir)));
  auto tier =
      open_tier(config, config.durable.dir, fmt::format("{:016x}-{}", job.run, group.rank()));
  BACKSTAY_TRY(group.agree(tier.ok() ? Status() : Status(tier.error())));
  std::unique_ptr<Directory> directory(new Directory(job, std::move(*tier)));
  const bool first_of_node = group.local_rank() == 0;
  Status alone;
  if (first_of_node) alone = store::check_unlocked(config.storage.dir, directory->job_);
  if (first_of_node && alone.ok()) {
    alone = client::refuse_running(config.storage.dir, directory->job_);
  }
  BACKSTAY_TRY(group.agree(alone));
  BACKSTAY_TRY(group.agree(group.rank() == 0 ? directory->take_live() : Status()));
  BACKSTAY_TRY(directory->see_the_same(group));
  BACKSTAY_TRY(
      group.agree(group.rank() == 0 ? directory->find_newest(config, open_tier) : Status()));
  BACKSTAY_TRY(group.broadcast(&directory->newest_, sizeof directory->newest_));
  return directory;
}

Directory::Directory(const client::JobStart& job, std::unique_ptr<tier::Tier> tier)
    : dir_(job.config.durable.dir), job_(job.config.job.name), tier_(std::move(tier)) {}

Status Directory::take_live() {
  BACKSTAY_ASSIGN(live_, store::lock_live(dir_, job_));
  return {};
}

// Rank 0 has just written its process and host there.
Status Directory::see_the_same(const client::Group& group) const {
  std::array<char, live_bytes_max> first{};
  std::ifstream(fmt::format("{}/{}/live", dir_, job_)).read(first.data(), first.size());
  const auto here = first;
  BACKSTAY_TRY(group.broadcast(first.data(), first.size()));
  if (first == here) return group.agree({});
  return group.agree(
      Error(Code::config,
            fmt::format("durable.dir is {}, which is another directory on {} than on the host "
                        "of rank 0: name one on storage that all hosts share",
                        dir_, host_name())));
}

Status Directory::find_newest(const Config& config, const OpenTier& open_tier) {
  BACKSTAY_ASSIGN(const auto shared, store::scan(*tier_, job_));
  newest_ = newest_of(shared);
  std::error_code failure;
  if (!std::filesystem::is_directory(config.storage.dir, failure)) return {};
  BACKSTAY_ASSIGN(const auto tier, open_tier(config, config.storage.dir, ""));
  const auto local = store::scan(*tier, job_);
  if (local.ok()) newest_ = std::max(newest_, newest_of(*local));
  return {};
}

std::optional<Error> Directory::given_up(VersionNumber version) const {
  const std::string folder = format::version_folder(job_, version);
  const auto why = tier_->get(folder + "/" + std::string(format::damaged_name), mark_bytes_max);
  if (!why.ok()) return std::nullopt;
  const std::string text(reinterpret_cast<const char*>(why->data()), why->size());
  return Error(Code::io, text.substr(0, text.find('\n')));
}

bool Directory::may_have_part(VersionNumber version, NodeId part) const {
  const std::string folder = format::version_folder(job_, version);
  const auto manifest = tier_->get(format::manifest_name(folder, part), format::manifest_bytes_max);
  return manifest.ok() || manifest.error().code() != Code::not_found;
}

// A folder without a record is the rest of a version that was not finished.
Status Directory::begin(VersionNumber version) {
  BACKSTAY_TRY(live_->check());
  BACKSTAY_ASSIGN(lock_, store::lock_job(dir_, job_));
  BACKSTAY_TRY(store::remove_unfinished(*tier_, job_));
  const store::StoredVersion there = store::look_at(*tier_, job_, version);
  if (there.level == Level::none && !there.unreadable) {
    return tier_->remove(format::version_folder(job_, version));
  }
  lock_ = nullptr;
  return Error(Code::busy, fmt::format("version {} of job {} is in {} already, from another run",
                                       version, job_, dir_));
}

Status Directory::record(format::CommitRecord record) {
  BACKSTAY_TRY(lock_->check());
  return store::commit_copy(*tier_, record);
}

Status Directory::end(std::uint32_t keep) {
  const auto lock = std::move(lock_);
  BACKSTAY_TRY(lock->check());
  BACKSTAY_ASSIGN(auto versions, store::scan(*tier_, job_));
  std::erase_if(versions, [](const store::StoredVersion& one) {
    return one.unreadable.has_value() || one.level == Level::none;
  });
  auto expired = store::expired(versions, keep, 0);
  for (const store::StoredVersion& one : versions) {
    if (std::ranges::find(expired, one.version) != expired.end()) continue;
    for (const format::Need& need : one.record.needs) std::erase(expired, need.version);
  }
  for (const VersionNumber version : expired) {
    BACKSTAY_TRY(tier_->remove(format::version_folder(job_, version)));
  }
  return {};
}

Status Directory::take_back(VersionNumber version) {
  const auto lock = std::move(lock_);
  if (lock == nullptr) return {};
  BACKSTAY_TRY(lock->check());
  return tier_->remove(format::version_folder(job_, version));
}

Status Directory::set_aside(VersionNumber version, const std::string& why) {
  BACKSTAY_ASSIGN(const auto lock, store::lock_job(dir_, job_));
  return store::set_aside(*tier_, job_, version, why);
}

void Directory::leave_to_parent() const {
  if (live_ != nullptr) live_->leave_to_parent();
  if (lock_ != nullptr) lock_->leave_to_parent();
}

}  // namespace backstay::strategy
