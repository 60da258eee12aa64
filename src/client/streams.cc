#include "client/streams.h"

#include <fmt/format.h>

#include <algorithm>

namespace backstay::client {

Result<Streams::Id> Streams::open(const std::string& name) {
  if (failed_) return *failed_;
  BACKSTAY_TRY(format::check_region_name(name));
  if (streams_.size() >= format::streams_max) {
    return Error(Code::too_large, "a rank may open 1000000 streams between two checkpoints");
  }
  if (!by_name_.try_emplace(name, streams_.size()).second) {
    return Error(Code::duplicate, fmt::format("a stream '{}' was opened since the last checkpoint: "
                                              "give each stream of a version its own name",
                                              name));
  }
  streams_.emplace_back().name = name;
  open_.push_back(true);
  return first_id_ + streams_.size() - 1;
}

format::Stream* Streams::find_open(Id id) {
  const std::uint64_t at = id - first_id_;  // wraps where it is older
  return at < streams_.size() && open_[at] ? &streams_[at] : nullptr;
}

Error Streams::not_open(Id id) const {
  const std::uint64_t at = id - first_id_;
  if (at < streams_.size()) {
    return {Code::state, fmt::format("stream '{}' is closed: open one of another name, or write "
                                     "all of it before it is closed",
                                     streams_[at].name)};
  }
  return {Code::state, fmt::format("no stream {} is open; a stream ends with the checkpoint that "
                                   "follows it, or with a restart",
                                   id)};
}

Status Streams::write(Connection* agent, VersionNumber version, Id id, const Place& from,
                      std::uint64_t bytes) {
  format::Stream* const stream = find_open(id);
  if (stream == nullptr) return not_open(id);
  if (failed_) return *failed_;
  if (bytes == 0) return {};
  if (agent == nullptr) return fail(Error(Code::agent_lost, "the agent is gone"));
  if (!begun_) fill_.begin(*agent, version, /*asked=*/0);
  begun_ = true;
  const auto copy = [&](std::uint64_t at, std::span<std::byte> to, Checksum& sum) -> Status {
    BACKSTAY_TRY(copy_in(from, at, to, sum));
    stream->append(fill_.bytes(), to.size());
    return {};
  };
  const Status done = fill_.append(bytes, copy);
  return done.ok() ? done : fail(done.error());
}

Status Streams::close(Id id) {
  if (find_open(id) == nullptr) return not_open(id);
  if (failed_) return *failed_;
  open_[id - first_id_] = false;
  return {};
}

Status Streams::ready() const {
  if (failed_) return *failed_;
  const auto open = std::ranges::find(open_, true);
  if (open == open_.end()) return {};
  return Error(Code::state,
               fmt::format("stream '{}' is open: close it before the checkpoint; what was written "
                           "to streams since the last one is dropped",
                           streams_[static_cast<std::size_t>(open - open_.begin())].name));
}

Status Streams::fail(const Error& why) {
  failed_ = why;
  (void)fill_.give_up();
  return why;
}

void Streams::give_up() {
  (void)fill_.give_up();
  forget();
}

void Streams::agent_is_lost() {
  if (!begun() || failed_) return;
  failed_ = Error(Code::agent_lost,
                  "the agent is gone, and with it what was written to streams since the last "
                  "checkpoint: write it again after the checkpoint that fails");
  fill_.forget();
  begun_ = false;
}

void Streams::forget() {
  first_id_ += streams_.size();
  streams_.clear();
  open_.clear();
  by_name_.clear();
  fill_.forget();
  begun_ = false;
  failed_.reset();
}

}  // namespace backstay::client
