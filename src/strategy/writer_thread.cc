#include "strategy/writer_thread.h"

#include <signal.h>

#include <utility>

#include "base/attempt.h"
#include "base/clock.h"

namespace backstay::strategy {

WriterThread::WriterThread(const Config& config, TellFailure failed)
    : buffers_(config), tell_failure_(std::move(failed)) {
  for (std::size_t index = 0; index < buffers_.count(); ++index) idle_.push_back(index);
  // The program's signals are for its own threads.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

WriterThread::~WriterThread() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void WriterThread::begin(std::unique_ptr<store::PartWriter> part, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  part_ = std::move(part);
  bytes_ = bytes;
  times_ = {};
  outcome_.reset();
  failed_.reset();
  changed_.notify_all();
}

std::size_t WriterThread::buffer() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !idle_.empty(); });
  const std::size_t index = idle_.front();
  idle_.pop_front();
  return index;
}

void WriterThread::filled(std::size_t buffer, const store::NewChunk& chunk) {
  const std::lock_guard lock(mutex_);
  filled_.push_back({buffer, chunk});
  changed_.notify_all();
}

void WriterThread::end(store::PartEnd end) {
  const std::lock_guard lock(mutex_);
  end_ = std::move(end);
  changed_.notify_all();
}

void WriterThread::give_up(const Error& why) {
  const std::lock_guard lock(mutex_);
  if (!failed_) failed_ = why;
  end_ = store::PartEnd{};
  changed_.notify_all();
}

Status WriterThread::wait(RankReport& report) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return part_ == nullptr; });
  report.payload_bytes = times_.payload_bytes;
  report.digest = times_.digest;
  report.open_ns = times_.open_ns;
  report.write_ns = times_.write_ns;
  report.close_ns = times_.close_ns;
  return outcome_.value_or(Status());
}

Status WriterThread::so_far() {
  const std::lock_guard lock(mutex_);
  if (failed_) return *failed_;
  return outcome_.value_or(Status());
}

// --- the thread ----------------------------------------------------------------------------------

void WriterThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stops_ || part_ != nullptr; });
    if (part_ == nullptr) return;
    write_all(lock);
    if (stops_) return;
  }
}

// With the lock, which it gives up while it waits for the disk.
void WriterThread::write_all(std::unique_lock<std::mutex>& lock) {
  const Clock& clock = system_clock();
  const auto unlocked = [&](const auto& work) {
    lock.unlock();
    const Status status = attempt(work);
    lock.lock();
    if (!status.ok() && !failed_) failed_ = status.error();
  };
  const std::uint64_t began = clock.monotonic_ns();
  unlocked([&] { return part_->open(bytes_); });
  const std::uint64_t opened = clock.monotonic_ns();
  while (true) {
    changed_.wait(lock,
                  [&] { return stops_ || !filled_.empty() || end_ || part_->in_flight() > 0; });
    if (filled_.empty() && (end_ || stops_)) break;
    if (filled_.empty() || (!failed_ && part_->full())) {
      take_in(/*wait=*/true, lock);
      continue;
    }
    const Filled next = filled_.front();
    filled_.pop_front();
    if (failed_) {
      idle_.push_back(next.buffer);
      changed_.notify_all();
    } else {
      part_->write(next.chunk, next.buffer);
    }
    take_in(/*wait=*/false, lock);
  }
  while (part_->in_flight() > 0) take_in(/*wait=*/true, lock);
  const std::uint64_t written = clock.monotonic_ns();
  if (stops_ && !end_ && !failed_) failed_ = Error(Code::state, "the session ended before");
  if (!failed_) {
    unlocked([&]() -> Status {
      BACKSTAY_ASSIGN(const store::FinishedPart finished, part_->finish(*end_));
      times_.payload_bytes = finished.record.payload_bytes;
      times_.digest = finished.record.manifests_sum;
      return {};
    });
  }
  if (failed_) {
    unlocked([&]() -> Status {
      const VersionNumber version = part_->info().version;
      part_->fail(*failed_);
      tell_failure_(version, *failed_);
      return {};
    });
  }
  times_.open_ns = opened - began;
  times_.write_ns = written - opened;
  times_.close_ns = clock.monotonic_ns() - written;
  end_.reset();
  part_.reset();
  outcome_ = failed_ ? Status(*failed_) : Status();
  changed_.notify_all();
}

// What is written, or could not be, makes its buffers free.
void WriterThread::take_in(bool wait, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  const std::vector<tier::Done> done = part_->reap(wait);
  lock.lock();
  if (part_->error() && !failed_) failed_ = *part_->error();
  for (const tier::Done& one : done) idle_.push_back(one.tag);
  changed_.notify_all();
}

}  // namespace backstay::strategy
