#include <cerrno>
#include <random>

#include "io/blocking_request.h"
#include "io/memory.h"

namespace backstay::io {

namespace {

class MemoryRing final : public Ring {
 public:
  explicit MemoryRing(MemoryRingOptions options) : options_(options), random_(options.seed) {
    BACKSTAY_CHECK(options.depth > 0);
  }
  ~MemoryRing() override {
    while (in_flight() > 0) (void)reap(true);
  }

  unsigned depth() const override { return options_.depth; }
  unsigned in_flight() const override { return static_cast<unsigned>(requests_.size()); }

  void write(File& file, std::uint64_t offset, Bytes from, std::uint64_t tag) override {
    BACKSTAY_CHECK(in_flight() < depth());
    requests_.push_back({&file, offset, from, {}, false, tag});
  }
  void read(File& file, std::uint64_t offset, std::span<std::byte> to, std::uint64_t tag) override {
    BACKSTAY_CHECK(in_flight() < depth());
    requests_.push_back({&file, offset, {}, to, true, tag});
  }

  std::vector<Completion> reap(bool wait) override {
    std::vector<Completion> completed;
    auto count = below(requests_.size() + 1);
    if (wait && count == 0 && !requests_.empty()) count = 1;
    while (count-- > 0) {
      const auto chosen = requests_.begin() + static_cast<std::ptrdiff_t>(below(requests_.size()));
      const BlockingRequest request = *chosen;
      requests_.erase(chosen);
      completed.push_back({request.tag, carry_out(request)});
    }
    return completed;
  }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }

  Status carry_out(const BlockingRequest& request) {
    if (options_.fail_one_in != 0 && below(options_.fail_one_in) == 0) return fail(request);
    return request.carry_out();
  }

  static Status fail(const BlockingRequest& request) {
    const std::size_t half = request.from.size() / 2 / direct_alignment * direct_alignment;
    if (half > 0) (void)request.file->write_at(request.offset, request.from.first(half));
    return errno_error("a request that was chosen to fail", EIO);
  }

  const MemoryRingOptions options_;
  std::mt19937_64 random_;
  std::vector<BlockingRequest> requests_;
};

}  // namespace

std::unique_ptr<Ring> make_memory_ring(MemoryRingOptions options) {
  return std::make_unique<MemoryRing>(options);
}

}  // namespace backstay::io
