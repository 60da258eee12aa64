#include "bench/harness/rank.h"

#include <cstring>
#include <memory>
#include <span>

#include "bench/harness/content.h"
#include "bench/harness/samples.h"
#include "bench/harness/shared.h"

namespace backstay::bench {

namespace {

class RankProgram {
 public:
  RankProgram(const backstay_group& group, RankMemory memory, std::string config_path)
      : group_(group),
        data_(map_touched(memory.bytes, false), memory.bytes),
        other_(memory.with_copy ? map_touched(memory.bytes, false) : nullptr),
        config_path_(std::move(config_path)) {}

  Report serve(int command, std::uint64_t seed) {
    const std::uint64_t own_seed = rank_seed(seed, group_.rank);
    Report report;
    report.start_ns = now_ns();
    switch (command) {
      case fill: fill_content(data_, own_seed); break;
      case copy: std::memcpy(other_, data_.data(), data_.size()); break;
      case join: return do_join();
      case checkpoint: return timed_checkpoint();
      case restart:
        if (backstay_restart(nullptr) != BACKSTAY_OK) return library_failure("restart");
        break;
      case verify:
        if (!has_content(data_, own_seed)) return Report::failure("restart gave other bytes");
        break;
      case leave:
        if (backstay_finalize() != BACKSTAY_OK) return library_failure("finalize");
        break;
      default: return Report::failure("unknown command");
    }
    report.end_ns = now_ns();
    return report;
  }

 private:
  Report do_join() {
    Report report;
    report.start_ns = now_ns();
    if (backstay_init_group(&group_, config_path_.c_str()) != BACKSTAY_OK) {
      return library_failure("init");
    }
    report.end_ns = now_ns();
    if (backstay_protect("data", data_.data(), data_.size(), BACKSTAY_BYTE) != BACKSTAY_OK) {
      return library_failure("protect");
    }
    return report;
  }

  backstay_group group_;
  std::span<std::byte> data_;
  std::byte* other_;
  std::string config_path_;
};

}  // namespace

Workers::Build make_rank(RankMemory memory, std::string config_path) {
  return [memory, config_path](const backstay_group& group) -> Workers::Serve {
    auto program = std::make_shared<RankProgram>(group, memory, config_path);
    return [program](int command, std::uint64_t seed) { return program->serve(command, seed); };
  };
}

}  // namespace backstay::bench
