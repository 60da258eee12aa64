#include "strategy/writer_thread.h"

#include <utility>

#include "base/attempt.h"
#include "base/clock.h"
#include "base/quiet_thread.h"
#include "store/catalog.h"

namespace backstay::strategy {

WriterThread::WriterThread(const Ranks& ranks) : ranks_(ranks), buffers_(ranks.job.config) {
  for (std::size_t index = 0; index < buffers_.count(); ++index) idle_.push_back(index);
}

WriterThread::~WriterThread() {
  if (!thread_.joinable()) return;
  if (!ended_) end(Error(Code::state, "the session ended before"));
  thread_.join();
}

void WriterThread::begin(const store::VersionInfo& info) {
  ended_.reset();
  writes_ = false;
  outcome_ = {};
  report_ = {};
  thread_ = quiet_thread([this, info] { run(info); });
}

void WriterThread::expect(store::PartEnd part) {
  const std::lock_guard lock(mutex_);
  expected_ = std::move(part);
}

Status WriterThread::take(const Chunk& chunk, const Fill& fill) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !idle_.empty(); });
  const std::size_t buffer = idle_.front();
  idle_.pop_front();
  lock.unlock();
  const std::span<std::byte> memory = buffers_.at(buffer);
  const auto sum = fill(memory.first(chunk.length));
  lock.lock();
  filled_.push_back({buffer,
                     {.object = chunk.rank,
                      .object_offset = chunk.object_offset,
                      .length = chunk.length,
                      .checksum = sum.ok() ? *sum : 0,
                      .memory = memory}});
  changed_.notify_all();
  return sum.ok() ? Status() : Status(sum.error());
}

void WriterThread::end(const Status& taken) {
  const std::lock_guard lock(mutex_);
  if (!ended_) ended_ = taken;
  changed_.notify_all();
}

Status WriterThread::wait(RankReport& report) {
  if (!thread_.joinable()) return outcome_;
  thread_.join();
  report.open_ns = report_.open_ns;
  report.write_ns = report_.write_ns;
  report.close_ns = report_.close_ns;
  return outcome_;
}

Status WriterThread::so_far() {
  const std::lock_guard lock(mutex_);
  return outcome_;
}

// --- the thread ----------------------------------------------------------------------------------

void WriterThread::run(const store::VersionInfo& info) {
  const Clock& clock = system_clock();
  store::PartWriter part(ranks_.directory.tier(), ranks_.directory.job(), info);
  const std::uint64_t began = clock.monotonic_ns();
  Status status = attempt([&] { return part.open(0); });
  const std::uint64_t opened = clock.monotonic_ns();
  if (!status.ok()) part.fail(status.error());
  keep(status, attempt([&] {
         write_all(part);
         return Status();
       }));
  while (part.in_flight() > 0) reap(part, /*wait=*/true);
  while (const auto piece = next()) take_back(piece->buffer);  // write_all() took all or threw
  if (status.ok() && part.error()) status = *part.error();
  keep(status, *ended_);
  const std::uint64_t written = clock.monotonic_ns();
  const bool finishes = status.ok();
  if (finishes) {
    status = attempt([&] {
      const auto finished = part.finish(expected_);
      return finished.ok() ? Status() : Status(finished.error());
    });
  }
  report_.open_ns = opened - began;
  report_.write_ns = written - opened;
  report_.close_ns = clock.monotonic_ns() - written;
  // A version whose parts all have their manifests may be recorded, though this writer has failed.
  if (!status.ok() && !(finishes && ranks_.directory.may_have_part(info.version, info.node))) {
    (void)attempt([&]() -> Status {
      (void)part.remove();  // a full disk has room for the mark
      return store::set_aside(ranks_.directory.tier(), ranks_.directory.job(), info.version,
                              status.error().message());
    });
  }
  const std::lock_guard lock(mutex_);
  outcome_ = status;
}

// Takes every piece, also where the part has failed.
void WriterThread::write_all(store::PartWriter& part) {
  while (const auto piece = next()) {
    while (!part.error() && part.full()) reap(part, /*wait=*/true);
    if (part.error()) {
      take_back(piece->buffer);
    } else {
      part.write(piece->chunk, piece->buffer);
      reap(part, /*wait=*/false);
    }
    while (is_hungry() && part.in_flight() > 0) reap(part, /*wait=*/true);
  }
}

// No piece can come before a buffer is free.
bool WriterThread::is_hungry() {
  const std::lock_guard lock(mutex_);
  return filled_.empty() && idle_.empty();
}

// None: all have come.
std::optional<WriterThread::Filled> WriterThread::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    writes_ = writes_ || idle_.empty() || ended_;
    return writes_ && (!filled_.empty() || ended_);
  });
  if (filled_.empty()) return std::nullopt;
  const Filled filled = filled_.front();
  filled_.pop_front();
  return filled;
}

void WriterThread::take_back(std::size_t buffer) {
  const std::lock_guard lock(mutex_);
  idle_.push_front(buffer);  // small objects touch few buffers
  changed_.notify_all();
}

void WriterThread::reap(store::PartWriter& part, bool wait) {
  for (const tier::Done& done : part.reap(wait)) take_back(done.tag);
}

}  // namespace backstay::strategy
