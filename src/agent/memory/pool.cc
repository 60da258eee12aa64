#include "agent/memory/pool.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/machine.h"

namespace backstay::agent {

namespace {

constexpr std::uint64_t huge_page_bytes = 2u << 20;
#ifndef MADV_POPULATE_WRITE
constexpr int MADV_POPULATE_WRITE = 23;
#endif
#ifndef MADV_COLLAPSE
constexpr int MADV_COLLAPSE = 25;
#endif

struct Mapping {
  Fd fd;
  std::byte* base = nullptr;
};

Result<Mapping> map_memory(std::uint64_t bytes, unsigned flags) {
  Mapping mapping;
  mapping.fd = Fd(::memfd_create("backstay-pool", MFD_CLOEXEC | flags));
  if (!mapping.fd.valid()) return errno_error("create the pool", errno);
  if (::ftruncate(mapping.fd.get(), static_cast<off_t>(bytes)) != 0) {
    return errno_error("size the pool", errno);
  }
  // Aligned, so that a huge page can be mapped as one.
  const std::uint64_t reserved = bytes + huge_page_bytes;
  void* room = ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return errno_error("map the pool", errno);
  auto* const first = static_cast<std::byte*>(room);
  const std::uint64_t head =
      (huge_page_bytes - reinterpret_cast<std::uintptr_t>(room) % huge_page_bytes) %
      huge_page_bytes;
  void* base = ::mmap(first + head, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                      mapping.fd.get(), 0);
  if (base == MAP_FAILED) {
    const int failed = errno;
    ::munmap(room, reserved);
    return errno_error("map the pool", failed);
  }
  if (head > 0) ::munmap(room, head);
  ::munmap(first + head + bytes, huge_page_bytes - head);
  mapping.base = static_cast<std::byte*>(base);
  return mapping;
}

// Huge pages without a reservation (Linux 6.1): one page of each is touched, the kernel joins the
// rest. The disk then moves a buffer in one request instead of many: small pages lie scattered, and
// a request takes few pieces. Where it is refused nothing is lost. Never changes content: a rank
// may be filling the buffer already.
void join_pages(std::byte* base, std::uint64_t bytes) {
  for (std::uint64_t at = 0; at < bytes; at += huge_page_bytes) {
    (void)::madvise(base + at, 4096, MADV_POPULATE_WRITE);
  }
  (void)::madvise(base, bytes, MADV_COLLAPSE);
}

// Touches page by page groups, so that stopping the agent does not wait for the whole pool.
void touch(const std::stop_token& stop, std::byte* base, std::uint64_t bytes, std::uint64_t step,
           bool join) {
  for (std::uint64_t at = 0; at < bytes && !stop.stop_requested(); at += step) {
    const std::uint64_t size = std::min(step, bytes - at);
    if (join && size % huge_page_bytes == 0) join_pages(base + at, size);
    if (::madvise(base + at, size, MADV_POPULATE_WRITE) != 0) return;  // the first use touches them
  }
}

// Touching more than there is would make the kernel kill a process, perhaps the program that we
// serve. A tenth is left for other processes.
Status check_memory(std::uint64_t bytes) {
  constexpr std::uint64_t mib = 1 << 20;
  const MemoryLeft left = memory_left();
  const std::uint64_t most = left.bytes - left.bytes / 10;
  if (bytes <= most) return {};
  return Error(
      Code::too_large,
      fmt::format("the pool does not fit: pool.size_mib = {}, but only {} MiB of the memory of "
                  "{} are available; set pool.size_mib to at most {}",
                  bytes / mib, left.bytes / mib, left.of, most / mib));
}

}  // namespace

Result<std::unique_ptr<Pool>> Pool::create(const PoolOptions& options) {
  const std::uint64_t count = std::max<std::uint64_t>(2, options.bytes / options.buffer_bytes);
  if (count > UINT32_MAX) return Error(Code::too_large, "the pool would have too many buffers");
  const std::uint64_t bytes = count * options.buffer_bytes;
  if (options.huge_pages && bytes % huge_page_bytes == 0) {
    // Succeeds only where the administrator has reserved enough huge pages.
    if (auto mapping = map_memory(bytes, MFD_HUGETLB); mapping.ok()) {
      return std::unique_ptr<Pool>(new Pool(std::move(mapping->fd), mapping->base,
                                            static_cast<std::uint32_t>(count), options.buffer_bytes,
                                            Pages::huge));
    }
  }
  BACKSTAY_TRY(check_memory(bytes));
  BACKSTAY_ASSIGN(Mapping mapping, map_memory(bytes, 0));
  if (options.huge_pages) ::madvise(mapping.base, bytes, MADV_HUGEPAGE);  // a wish
  const bool join = options.huge_pages && options.buffer_bytes % huge_page_bytes == 0;
  return std::unique_ptr<Pool>(new Pool(std::move(mapping.fd), mapping.base,
                                        static_cast<std::uint32_t>(count), options.buffer_bytes,
                                        join ? Pages::to_join : Pages::small));
}

Pool::Pool(Fd memory_fd, std::byte* base, std::uint32_t count, std::uint32_t buffer_bytes,
           Pages pages)
    : memory_fd_(std::move(memory_fd)),
      base_(base),
      count_(count),
      buffer_bytes_(buffer_bytes),
      huge_(pages == Pages::huge),
      free_count_(count),
      free_(count, true),
      returns_(count),
      toucher_([this, pages](const std::stop_token& stop) {
        touch(stop, base_, bytes(), buffer_bytes_, pages == Pages::to_join);
        touched_ = true;
        touched_.notify_all();
      }) {}

Pool::~Pool() {
  toucher_.request_stop();
  if (toucher_.joinable()) toucher_.join();
  ::munmap(base_, bytes());
}

HomeRange Pool::home_of(std::uint32_t local_rank, std::uint32_t local_ranks) const {
  if (local_ranks == 0 || local_rank >= local_ranks) return {};
  const auto first = static_cast<std::uint32_t>(std::uint64_t{count_} * local_rank / local_ranks);
  const auto end =
      static_cast<std::uint32_t>(std::uint64_t{count_} * (local_rank + 1) / local_ranks);
  return {first, end - first};
}

std::uint32_t Pool::free_count_in(HomeRange home) const {
  const auto first = free_.begin() + static_cast<std::ptrdiff_t>(home.first);
  return static_cast<std::uint32_t>(
      std::count(first, first + static_cast<std::ptrdiff_t>(home.count), true));
}

std::optional<std::uint32_t> Pool::take_in(std::uint32_t first, std::uint32_t end) {
  for (std::uint32_t index = first; index < end; ++index) {
    if (!free_[index]) continue;
    free_[index] = false;
    --free_count_;
    return index;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> Pool::take_from(HomeRange home) {
  if (free_count_ == 0) return std::nullopt;
  return take_in(home.first, home.first + home.count);
}

std::optional<std::uint32_t> Pool::take() {
  if (free_count_ == 0) return std::nullopt;
  auto index = take_in(cursor_, count_);
  if (!index) index = take_in(0, cursor_);
  if (index) cursor_ = *index;
  return index;
}

void Pool::give_back(std::uint32_t index) {
  BACKSTAY_CHECK(index < count_ && !free_[index]);
  {
    const std::lock_guard guard(giving_back_[index % giving_back_.size()]);
    ++returns_[index];
  }
  free_[index] = true;
  ++free_count_;
}

// A little at a time: the main loop waits for no whole buffer.
bool Pool::copy_out(std::uint32_t index, std::uint64_t returns, std::uint64_t offset,
                    std::span<std::byte> to) const {
  constexpr std::size_t piece_bytes = 256 << 10;
  const std::byte* from = base_ + std::uint64_t{index} * buffer_bytes_ + offset;
  for (std::size_t at = 0; at < to.size(); at += piece_bytes) {
    const std::size_t bytes = std::min(piece_bytes, to.size() - at);
    const std::lock_guard guard(giving_back_[index % giving_back_.size()]);
    if (returns_[index] != returns) return false;
    std::memcpy(to.data() + at, from + at, bytes);
  }
  return true;
}

}  // namespace backstay::agent
