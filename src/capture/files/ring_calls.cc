// Registering files in a ring of io_uring (liburing). The ring has the file of each descriptor from
// then on: what it writes there later would not follow the descriptor when that is closed, or led
// from memory to the place of its file. So these files become real first. liburing makes its
// system calls without libc, so only its functions can be seen, and none of a program that is
// linked with it statically. Like liburing's, these functions return minus an error number.
#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstring>

#include "capture/files/capture.h"
#include "capture/files/export.h"
#include "capture/files/pattern.h"
#include "capture/files/ring.h"

namespace backstay::files {
namespace {

int make_descriptors_real(const int* files, unsigned count) {
  if (!is_anything_captured() || files == nullptr) return 0;
  for (unsigned number = 0; number < count; ++number) {
    if (files[number] < 0) continue;
    if (const int error = make_descriptor_real(files[number])) return error;
  }
  return 0;
}

void* symbol_of(const char* library, const char* name) {
  void* loaded = ::dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (loaded == nullptr) return nullptr;
  void* symbol = ::dlsym(loaded, name);
  ::dlclose(loaded);  // it was loaded before, and stays
  return symbol;
}

int note_if_liburing(struct dl_phdr_info* library, std::size_t, void* found) {
  const char* slash = std::strrchr(library->dlpi_name, '/');
  if (slash == nullptr || std::strncmp(slash, "/liburing", 9) != 0) return 0;
  return std::snprintf(static_cast<char*>(found), path_max, "%s", library->dlpi_name);
}

// The function that `caller` would have called without us; null: there is none. A plugin, or a
// module of Python, may have brought liburing for itself alone, where RTLD_NEXT does not look. A
// caller that jumps here, as its last deed, leaves the address of its own caller: then any liburing
// has to do. The answer is not kept: such a plugin may go away, and another bring its own.
void* liburings(const char* name, const void* own, const void* caller) {
  const int kept = errno;
  void* symbol = ::dlsym(RTLD_NEXT, name);
  Dl_info from = {};
  if (symbol == nullptr && ::dladdr(caller, &from) != 0) symbol = symbol_of(from.dli_fname, name);
  char library[path_max] = "";
  if ((symbol == nullptr || symbol == own) && ::dl_iterate_phdr(note_if_liburing, library) > 0) {
    symbol = symbol_of(library, name);
  }
  errno = kept;
  return symbol == own ? nullptr : symbol;
}

}  // namespace

int make_registered_real(unsigned opcode) {
  if (!is_anything_captured() || !registers_files(opcode)) return 0;
  Lock lock;
  return make_all_real();
}

}  // namespace backstay::files

// Ends the call with `error`, if there is one, else with what liburing's function answers.
#define REGISTER(name, parameters, arguments, failure)                                             \
  extern "C" __attribute__((visibility("default"))) int backstay_##name parameters __asm__(#name); \
  int backstay_##name parameters {                                                                 \
    if (const int error = failure) return -error;                                                  \
    const auto next = reinterpret_cast<decltype(&backstay_##name)>(                                \
        liburings(#name, reinterpret_cast<void*>(&backstay_##name), __builtin_return_address(0))); \
    return next == nullptr ? -ENOSYS : next arguments;                                             \
  }

namespace backstay::files {

REGISTER(io_uring_register_files, (void* ring, const int* files, unsigned count),
         (ring, files, count), make_descriptors_real(files, count))
REGISTER(io_uring_register_files_tags,
         (void* ring, const int* files, const void* tags, unsigned count),
         (ring, files, tags, count), make_descriptors_real(files, count))
REGISTER(io_uring_register_files_update,
         (void* ring, unsigned at, const int* files, unsigned count), (ring, at, files, count),
         make_descriptors_real(files, count))
REGISTER(io_uring_register_files_update_tag,
         (void* ring, unsigned at, const int* files, const void* tags, unsigned count),
         (ring, at, files, tags, count), make_descriptors_real(files, count))
REGISTER(io_uring_register, (unsigned ring, unsigned opcode, const void* argument, unsigned count),
         (ring, opcode, argument, count), make_registered_real(opcode))

}  // namespace backstay::files
