#include "bench/harness/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/fd.h"
#include "bench/harness/content.h"
#include "bench/harness/pattern.h"
#include "bench/harness/shared.h"

namespace backstay::bench {

namespace {

using Piece = std::span<std::byte>;

Report system_failure(const char* what) {
  return Report::failure(std::string(what) + ": " + std::strerror(errno));
}

bool write_all(int fd, std::span<const std::byte> from) {
  while (!from.empty()) {
    const ssize_t done = ::write(fd, from.data(), from.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    from = from.subspan(static_cast<std::size_t>(done));
  }
  return true;
}

class WriterProgram {
 public:
  WriterProgram(const backstay_group& group, const WriterPlace& place)
      : group_(group), place_(place), path_(place.dir + "/process-" + std::to_string(group.rank)) {
    const auto sizes = make_pattern(place.pattern_seed, group.rank, place.shrink);
    std::uint64_t aggregated = 0;
    for (const std::uint64_t size : sizes) {
      bytes_ += size;
      if (size < threshold_max) aggregated += size;
    }
    std::byte* at = map_touched(bytes_, false);
    all_ = {at, bytes_};
    for (const std::uint64_t size : sizes) {
      pieces_.emplace_back(at, size);
      at += size;
    }
    aggregate_ = {map_touched(aggregated, false), aggregated};
  }

  Report serve(int command, std::uint64_t seed) {
    const std::uint64_t own_seed = seed * 100'003 + static_cast<std::uint64_t>(group_.rank);
    Report report;
    report.value = bytes_;
    switch (command) {
      case piece_fill: fill_content(all_, own_seed); return report;
      case piece_count: report.value = pieces_.size(); return report;
      case write_direct: return direct();
      case write_aggregate: return aggregate(seed);
      case piece_work: work(seed); return report;
      case pool_join: return join();
      case write_pool: return timed_checkpoint();
      case pool_save:
        report.start_ns = now_ns();
        if (backstay_checkpoint() != BACKSTAY_OK) return library_failure("checkpoint");
        report.end_ns = report.later_ns = now_ns();
        return report;
      case pool_wait:
        report.start_ns = now_ns();
        if (backstay_wait(backstay_version(), BACKSTAY_LOCAL, -1) != BACKSTAY_OK) {
          return library_failure("wait");
        }
        report.end_ns = report.later_ns = now_ns();
        return report;
      case pool_restart:
        fill_content(all_, ~own_seed);
        if (backstay_restart(nullptr) != BACKSTAY_OK) return library_failure("restart");
        return report;
      case piece_verify:
        if (!has_content(all_, own_seed)) return Report::failure("restart gave other bytes");
        return report;
      case pool_leave:
        if (backstay_finalize() != BACKSTAY_OK) return library_failure("finalize");
        return report;
      default: return Report::failure("unknown command");
    }
  }

 private:
  Report direct() {
    ::unlink(path_.c_str());
    Report report;
    report.start_ns = now_ns();
    const Fd file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    for (const Piece& piece : pieces_) {
      if (!write_all(file.get(), piece)) return system_failure("write");
    }
    if (fsync(file.get()) != 0) return system_failure("fsync");
    report.end_ns = report.later_ns = now_ns();
    return report;
  }

  void work(std::uint64_t passes) const {
    for (std::uint64_t i = 0; i < passes; ++i) fill_content(all_, i);
  }

  Report aggregate(std::uint64_t threshold) {
    ::unlink(path_.c_str());
    Report report;
    report.start_ns = now_ns();
    const Fd file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    std::size_t filled = 0;
    for (const Piece& piece : pieces_) {
      if (piece.size() < threshold) {
        std::memcpy(aggregate_.data() + filled, piece.data(), piece.size());
        filled += piece.size();
      } else if (!write_all(file.get(), piece)) {
        return system_failure("write");
      }
    }
    if (!write_all(file.get(), aggregate_.first(filled))) return system_failure("write");
    report.value = filled;
    if (fsync(file.get()) != 0) return system_failure("fsync");
    report.end_ns = report.later_ns = now_ns();
    return report;
  }

  Report join() {
    if (backstay_init_group(&group_, place_.config_path.c_str()) != BACKSTAY_OK) {
      return library_failure("init");
    }
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const std::string name = "piece-" + std::to_string(i);
      if (backstay_protect(name.c_str(), pieces_[i].data(), pieces_[i].size(), BACKSTAY_BYTE) !=
          BACKSTAY_OK) {
        return library_failure("protect");
      }
    }
    return {};
  }

  backstay_group group_;
  WriterPlace place_;
  std::string path_;
  std::uint64_t bytes_ = 0;
  std::span<std::byte> all_;
  std::vector<Piece> pieces_;
  std::span<std::byte> aggregate_;
};

}  // namespace

Workers::Build make_writer(const WriterPlace& place) {
  return [place](const backstay_group& group) -> Workers::Serve {
    auto program = std::make_shared<WriterProgram>(group, place);
    return [program](int command, std::uint64_t seed) { return program->serve(command, seed); };
  };
}

}  // namespace backstay::bench
