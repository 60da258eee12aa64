#include "client/device_memory.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace backstay::client {

namespace {
// Numbers of the CUDA driver's ABI, which does not change them.
constexpr int attribute_context = 1;
constexpr int attribute_memory_type = 2;
constexpr int attribute_is_managed = 8;
constexpr unsigned memory_type_device = 2;
constexpr unsigned register_portable = 1;

template <typename Function>
bool look_up(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

template <typename Number>
Number address(const void* data) {
  return static_cast<Number>(reinterpret_cast<std::uintptr_t>(data));
}
}  // namespace

const DeviceMemory* DeviceMemory::find() {
  static std::atomic<const DeviceMemory*> known{nullptr};
  if (const DeviceMemory* driver = known.load(std::memory_order_acquire)) return driver;
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  auto* driver = new DeviceMemory;  // lives as long as the process, like the driver
  if (!driver->load(library)) {
    delete driver;
    return nullptr;
  }
  known.store(driver, std::memory_order_release);
  return driver;
}

const DeviceMemory* DeviceMemory::of(const void* data) {
  const DeviceMemory* driver = data == nullptr ? nullptr : find();
  return driver != nullptr && driver->owns(data) ? driver : nullptr;
}

bool DeviceMemory::load(void* library) {
  return look_up(library, "cuPointerGetAttribute", pointer_attribute_) &&
         look_up(library, "cuMemcpy", memcpy_) && look_up(library, "cuCtxPushCurrent_v2", push_) &&
         look_up(library, "cuCtxPopCurrent_v2", pop_) &&
         look_up(library, "cuCtxSynchronize", synchronize_) &&
         look_up(library, "cuMemHostRegister_v2", register_) &&
         look_up(library, "cuMemHostUnregister", unregister_);
}

Error DeviceMemory::failed(const char* what, Result_ code) const {
  return Error(Code::io, std::string("GPU memory: ") + what + " failed with CUDA error " +
                             std::to_string(code));
}

bool DeviceMemory::owns(const void* data) const {
  unsigned type = 0;
  if (pointer_attribute_(&type, attribute_memory_type, address<Pointer>(data)) != 0) return false;
  if (type == memory_type_device) return true;
  unsigned managed = 0;
  return pointer_attribute_(&managed, attribute_is_managed, address<Pointer>(data)) == 0 &&
         managed != 0;
}

bool DeviceMemory::enter(const void* data) const {
  Context context = nullptr;
  if (pointer_attribute_(&context, attribute_context, address<Pointer>(data)) != 0) return false;
  return context != nullptr && push_(context) == 0;
}

void DeviceMemory::leave(bool entered) const {
  Context context = nullptr;
  if (entered) pop_(&context);
}

Status DeviceMemory::finish_work(const void* data) const {
  const bool entered = enter(data);
  const Result_ code = synchronize_();
  leave(entered);
  if (code != 0) return failed("waiting for the GPU", code);
  return {};
}

Status DeviceMemory::copy(void* to, const void* from, std::size_t bytes,
                          const void* device_side) const {
  const bool entered = enter(device_side);
  const Result_ code = memcpy_(address<Pointer>(to), address<Pointer>(from), bytes);
  leave(entered);
  if (code != 0) return failed("a copy", code);
  return {};
}

void DeviceMemory::pin(std::span<std::byte> memory) const {
  if (!memory.empty()) (void)register_(memory.data(), memory.size(), register_portable);
}

void DeviceMemory::unpin(std::span<std::byte> memory) const {
  if (!memory.empty()) (void)unregister_(memory.data());
}

}  // namespace backstay::client
