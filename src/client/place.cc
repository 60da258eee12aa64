#include "client/place.h"

#include <cstring>

#include "base/check.h"
#include "base/stream_copy.h"
#include "client/device_memory.h"
#include "client/files.h"

namespace backstay::client {

namespace {
constexpr std::size_t streamed_bytes_min = 4096;

Status device_copy(void* to, const void* from, std::size_t bytes, const void* device_side) {
  const DeviceMemory* driver = DeviceMemory::find();
  if (driver == nullptr) return Error(Code::internal, "a GPU region without a GPU driver");
  return driver->copy(to, from, bytes, device_side);
}
}  // namespace

Place memory_at(void* data) {
  return {static_cast<std::byte*>(data), DeviceMemory::of(data) != nullptr, -1};
}

void copy_piece(std::byte* to, Bytes from, Checksum& sum) {
  if (from.size() >= streamed_bytes_min) return sum.update_copy(to, from);
  std::memcpy(to, from.data(), from.size());
  sum.update(from);
}

Status copy_in(const Place& from, std::uint64_t offset, std::span<std::byte> to, Checksum& sum) {
  if (from.in_host_memory()) {
    copy_piece(to.data(), Bytes(from.data + offset, to.size()), sum);
    return {};
  }
  if (from.data != nullptr) {
    BACKSTAY_TRY(device_copy(to.data(), from.data + offset, to.size(), from.data));
  } else {
    BACKSTAY_TRY(read_routed(from.file, offset, to));
  }
  sum.update(to);
  return {};
}

void exchange(const Place& with, std::uint64_t offset, std::span<std::byte> bytes) {
  BACKSTAY_CHECK(with.in_host_memory());
  stream_exchange({with.data + offset, bytes.size()}, bytes);
}

Status copy_out(const Place& to, std::uint64_t offset, Bytes from, Checksum* sum) {
  if (to.in_host_memory()) {
    if (sum != nullptr) {
      sum->update_copy(to.data + offset, from);
    } else {
      stream_copy(to.data + offset, from);
    }
    return {};
  }
  if (sum != nullptr) sum->update(from);
  if (to.data != nullptr) {
    return device_copy(to.data + offset, from.data(), from.size(), to.data);
  }
  return write_routed(to.file, offset, from);
}

}  // namespace backstay::client
