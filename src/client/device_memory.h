// Memory of a GPU, reached through the CUDA driver that the program itself has loaded.
//
// No part of CUDA is needed to build: libcuda.so.1 is looked up among the libraries that are
// already in the process (every CUDA program has it, however the runtime was linked). A program
// without it pays nothing. Tested against a fake driver (tests/client/fake_cuda.cc); not tested on
// a real GPU yet.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"

namespace backstay::client {

class DeviceMemory {
 public:
  // The driver, once the process has it; nullptr before. Cheap; the answer "yes" is kept.
  static const DeviceMemory* find();
  // The driver whose memory `data` is in; nullptr: it is the host's.
  static const DeviceMemory* of(const void* data);

  // True for device and managed pointers: the CPU must not read them directly.
  bool owns(const void* data) const;
  // Waits for what the program has started on the GPU that owns `data`.
  Status finish_work(const void* data) const;
  // Copies between host and device in any direction; the context is that of `device_side`.
  Status copy(void* to, const void* from, std::size_t bytes, const void* device_side) const;
  // Page-locks host memory so that copies run at full speed. Failing costs speed only.
  void pin(std::span<std::byte> memory) const;
  void unpin(std::span<std::byte> memory) const;

 private:
  using Result_ = int;                 // CUresult
  using Context = void*;               // CUcontext
  using Pointer = unsigned long long;  // CUdeviceptr
  bool load(void* library);
  Error failed(const char* what, Result_ code) const;
  // Makes the context of `data` current; the returned flag says whether it must be taken away.
  bool enter(const void* data) const;
  void leave(bool entered) const;

  Result_ (*pointer_attribute_)(void*, int, Pointer) = nullptr;
  Result_ (*memcpy_)(Pointer, Pointer, std::size_t) = nullptr;
  Result_ (*push_)(Context) = nullptr;
  Result_ (*pop_)(Context*) = nullptr;
  Result_ (*synchronize_)() = nullptr;
  Result_ (*register_)(void*, std::size_t, unsigned) = nullptr;
  Result_ (*unregister_)(void*) = nullptr;
};

}  // namespace backstay::client
