#include "strategy/file_per_process.h"

#include <algorithm>

#include "base/attempt.h"
#include "base/clock.h"

namespace backstay::strategy {

namespace {

// One is filled while the others are written.
std::size_t buffers_of(const Config& config) {
  const std::uint64_t wanted = config.strategy.buffer_mib / config.pool.buffer_mib;
  return std::clamp<std::uint64_t>(wanted, 2, std::uint64_t{config.writer.depth} + 1);
}

}  // namespace

Buffers::Buffers(const Config& config) : piece_bytes_(piece_bytes_of(config)) {
  const std::size_t count = buffers_of(config);
  all_.reserve(count);
  while (all_.size() < count) all_.emplace_back(piece_bytes_);
}

namespace {

class Writing {
 public:
  Writing(store::PartWriter& part, Buffers& buffers) : part_(part), buffers_(buffers) {
    for (std::size_t index = 0; index < buffers.count(); ++index) idle_.push_back(index);
  }
  // Nothing may be in flight when the buffers go.
  ~Writing() { drain(); }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

  Status write(Rank rank, client::ObjectSource& source) {
    const std::uint64_t bytes = source.object_bytes();
    for (std::uint64_t at = 0; at < bytes;) {
      while ((idle_.empty() || part_.full()) && !part_.error()) reap();
      if (part_.error()) break;
      const std::size_t index = idle_.back();
      const auto length =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes - at, buffers_.piece_bytes()));
      const std::span<std::byte> memory = buffers_.at(index);
      BACKSTAY_ASSIGN(const std::uint64_t sum, source.read_next(memory.first(length)));
      idle_.pop_back();
      part_.write({rank, at, length, sum, memory}, index);
      at += length;
    }
    drain();
    return part_.error() ? Status(*part_.error()) : Status();
  }

 private:
  void reap() {
    for (const tier::Done& done : part_.reap(/*wait=*/true)) idle_.push_back(done.tag);
  }
  void drain() {
    while (part_.in_flight() > 0) reap();
  }

  store::PartWriter& part_;
  Buffers& buffers_;
  std::vector<std::size_t> idle_;
};

}  // namespace

Status FilePerProcess::write(const NewVersion& version, client::Snapshot& snapshot,
                             RankReport& report) {
  return ranks_.group.agree(attempt([&] { return write_part(version, snapshot, report); }));
}

Status FilePerProcess::write_part(const NewVersion& version, client::Snapshot& snapshot,
                                  RankReport& report) {
  const Clock& clock = system_clock();
  const auto rank = static_cast<Rank>(ranks_.group.rank());
  if (!buffers_) buffers_.emplace(ranks_.job.config);
  const std::uint64_t began = clock.monotonic_ns();
  store::PartWriter part(ranks_.directory.tier(), ranks_.directory.job(),
                         info_of(ranks_, version, rank, files()));
  BACKSTAY_TRY(part.open(snapshot.object_bytes()));
  const std::uint64_t opened = clock.monotonic_ns();
  BACKSTAY_TRY(Writing(part, *buffers_).write(rank, snapshot));
  const std::uint64_t written = clock.monotonic_ns();
  store::PartEnd end{.version = version.number,
                     .captured_ns = version.captured_ns,
                     .object_bytes = {{rank, snapshot.object_bytes()}}};
  BACKSTAY_ASSIGN(const store::FinishedPart finished, part.finish(end));
  report.payload_bytes = finished.record.payload_bytes;
  report.digest = finished.record.manifests_sum;
  report.open_ns = opened - began;
  report.write_ns = written - opened;
  report.close_ns = clock.monotonic_ns() - written;
  return {};
}

}  // namespace backstay::strategy
