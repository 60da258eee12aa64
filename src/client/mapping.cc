#include "client/mapping.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <utility>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace backstay::client {

Mapping::Mapping(Mapping&& other) noexcept
    : start_(std::exchange(other.start_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(start_, other.start_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (start_ != nullptr) ::munmap(start_, bytes_);
}

Result<Mapping> Mapping::of(const Fd& memory, std::size_t bytes, bool writable) {
  struct stat info {};
  if (::fstat(memory.get(), &info) != 0) return errno_error("look at the agent's memory", errno);
  if (bytes == 0 || static_cast<std::uint64_t>(info.st_size) < bytes) {
    return Error(Code::protocol, "the agent's memory is shorter than it says");
  }
  const int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* start = ::mmap(nullptr, bytes, access, MAP_SHARED, memory.get(), 0);
  if (start == MAP_FAILED) return errno_error("map the agent's memory", errno);
  Mapping mapping;
  mapping.start_ = static_cast<std::byte*>(start);
  mapping.bytes_ = bytes;
  return mapping;
}

void touch(std::span<std::byte> memory) {
  if (memory.empty()) return;
  if (::madvise(memory.data(), memory.size(), MADV_POPULATE_WRITE) == 0) return;
  // An atomic addition of nothing writes to the page and loses no byte of a concurrent writer.
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (std::size_t at = 0; at < memory.size(); at += page) {
    std::atomic_ref(reinterpret_cast<std::uint8_t&>(memory[at])).fetch_add(0);
  }
}

}  // namespace backstay::client
