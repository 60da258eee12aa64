// A fake libcuda.so.1: "device" memory that faults when the CPU touches it directly.
//
// Allocations live in a memfd that is mapped twice: once without any permission (the device pointer
// that the program sees) and once for the copies that this library makes.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

// The names and the pointers as numbers are CUDA's.
// NOLINTBEGIN(readability-identifier-naming, performance-no-int-to-ptr)

namespace {

struct Allocation {
  std::uintptr_t device;
  std::size_t bytes;
  unsigned char* shadow;
};
std::vector<Allocation>& allocations() {
  static auto& all = *new std::vector<Allocation>;
  return all;
}
int depth = 0;  // contexts pushed and not popped
int pinned = 0;
int synchronized = 0;

const Allocation* find(unsigned long long pointer) {
  for (const Allocation& one : allocations()) {
    if (pointer >= one.device && pointer < one.device + one.bytes) return &one;
  }
  return nullptr;
}

void* reachable(unsigned long long pointer) {
  const Allocation* one = find(pointer);
  return one == nullptr ? reinterpret_cast<void*>(pointer) : one->shadow + (pointer - one->device);
}

}  // namespace

extern "C" {

void* fake_cuda_allocate(std::size_t bytes) {
  const int memory = ::memfd_create("gpu", MFD_CLOEXEC);
  if (memory < 0 || ::ftruncate(memory, static_cast<off_t>(bytes)) != 0) return nullptr;
  void* device = ::mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, memory, 0);
  void* shadow = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  ::close(memory);
  allocations().push_back(
      {reinterpret_cast<std::uintptr_t>(device), bytes, static_cast<unsigned char*>(shadow)});
  return device;
}
void* fake_cuda_shadow(void* device) { return reachable(reinterpret_cast<std::uintptr_t>(device)); }
int fake_cuda_pinned() { return pinned; }
int fake_cuda_synchronized() { return synchronized; }

int cuPointerGetAttribute(void* out, int attribute, unsigned long long pointer) {
  static int context;
  if (find(pointer) == nullptr) return 1;
  if (attribute == 1) *static_cast<void**>(out) = &context;
  if (attribute == 2) *static_cast<unsigned*>(out) = 2;
  if (attribute == 8) *static_cast<unsigned*>(out) = 0;
  return 0;
}
int cuMemcpy(unsigned long long to, unsigned long long from, std::size_t bytes) {
  if (depth == 0) return 201;  // no current context
  std::memcpy(reachable(to), reachable(from), bytes);
  return 0;
}
int cuCtxPushCurrent_v2(void*) { return ++depth, 0; }
int cuCtxPopCurrent_v2(void**) { return --depth, 0; }
int cuCtxSynchronize() { return depth == 0 ? 201 : (++synchronized, 0); }
int cuMemHostRegister_v2(void*, std::size_t, unsigned) { return ++pinned, 0; }
int cuMemHostUnregister(void*) { return --pinned, 0; }

}  // extern "C"

// NOLINTEND(readability-identifier-naming, performance-no-int-to-ptr)
