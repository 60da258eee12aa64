#include "bench/harness/shared.h"

#include <cerrno>
#include <cstring>
#include <ctime>

#include "bench/harness/samples.h"

namespace backstay::bench {

std::byte* map_touched(std::size_t bytes, bool shared) {
  const int how = (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, how, -1, 0);
  if (memory == MAP_FAILED) die(std::string("no memory: ") + std::strerror(errno));
  auto* first = static_cast<std::byte*>(memory);
  for (std::size_t at = 0; at < bytes; at += 4096) first[at] = std::byte{0};
  return first;
}

std::byte* map_touched_huge(std::size_t bytes) {
  constexpr std::size_t huge = std::size_t{2} << 20;
  void* memory =
      mmap(nullptr, bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die(std::string("no memory: ") + std::strerror(errno));
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  auto* first = static_cast<std::byte*>(memory) + ((huge - address % huge) % huge);
  madvise(first, bytes, MADV_HUGEPAGE);  // a wish
  for (std::size_t at = 0; at < bytes; at += 4096) first[at] = std::byte{0};
  return first;
}

void SharedBarrier::init(unsigned parties) {
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  if (pthread_barrier_init(&barrier_, &attributes, parties) != 0) die("no barrier");
  pthread_barrierattr_destroy(&attributes);
}

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace backstay::bench
