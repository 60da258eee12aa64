#include "strategy/object_part.h"

#include <algorithm>

#include "base/clock.h"

namespace backstay::strategy {

namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

// One is filled while the others are written.
std::size_t buffers_of(const Config& config) {
  const std::uint64_t wanted = config.strategy.buffer_mib / config.pool.buffer_mib;
  return std::clamp<std::uint64_t>(wanted, 2, std::uint64_t{config.writer.depth} + 1);
}

}  // namespace

Buffers::Buffers(const Config& config)
    : piece_bytes_(static_cast<std::uint32_t>(config.pool.buffer_mib * mib)) {
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

Status write_part(store::PartWriter& part, Rank rank, client::ObjectSource& source,
                  std::uint64_t captured_ns, Buffers& buffers, RankReport& report) {
  const Clock& clock = system_clock();
  const std::uint64_t began = clock.monotonic_ns();
  BACKSTAY_TRY(part.open(source.object_bytes()));
  const std::uint64_t opened = clock.monotonic_ns();
  BACKSTAY_TRY(Writing(part, buffers).write(rank, source));
  const std::uint64_t written = clock.monotonic_ns();
  source.complete();
  store::PartEnd end{.version = part.info().version,
                     .captured_ns = captured_ns,
                     .object_bytes = {{rank, source.object_bytes()}}};
  BACKSTAY_ASSIGN(const store::FinishedPart finished, part.finish(end));
  report.payload_bytes = finished.record.payload_bytes;
  report.digest = finished.record.manifests_sum;
  report.open_ns = opened - began;
  report.write_ns = written - opened;
  report.close_ns = clock.monotonic_ns() - written;
  return {};
}

}  // namespace backstay::strategy
