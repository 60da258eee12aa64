#include <dlfcn.h>

#include "capture/files/export.h"

namespace backstay::files {
namespace {

long missing() {
  errno = ENOSYS;
  return -1;
}

}  // namespace

void* next_symbol(std::atomic<void*>& found, const char* name) {
  void* symbol = found.load(std::memory_order_relaxed);
  if (symbol != nullptr) return symbol;
  const int kept = errno;
  symbol = ::dlsym(RTLD_NEXT, name);
  if (symbol == nullptr) symbol = reinterpret_cast<void*>(&missing);
  errno = kept;
  found.store(symbol, std::memory_order_relaxed);
  return symbol;
}

}  // namespace backstay::files
