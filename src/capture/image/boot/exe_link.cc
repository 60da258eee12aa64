#include "capture/image/boot/exe_link.h"

#include <linux/mman.h>

#include "capture/image/boot/process.h"
#include "capture/image/boot/text.h"

namespace backstay::image::exe_link {

namespace {

// /proc/self/exe, /proc/thread-self/exe and /proc/PID/exe. Not those of the program's parent and
// children: they may have become other programs.
bool is_own(const char* path) {
  constexpr char folder[] = "/proc/";
  if (process.file[0] == 0 || !begins_with(path, folder)) return false;
  const char* at = path + sizeof folder - 1;
  if (same_text(at, "self/exe") || same_text(at, "thread-self/exe")) return true;
  if (*at < '1' || *at > '9') return false;
  const uint64_t id = read_decimal(at);
  return same_text(at, "/exe") && id == static_cast<uint64_t>(system_call(__NR_getpid));
}

}  // namespace

long read(const Call& call) {
  const uint64_t* a = call.arguments;
  const int first = call.number == __NR_readlinkat ? 1 : 0;
  const long bytes =
      system_call(static_cast<long>(call.number), static_cast<long>(a[0]), static_cast<long>(a[1]),
                  static_cast<long>(a[2]), static_cast<long>(a[3]));
  // The kernel has read the path, and written to `to`: both are memory.
  if (bytes <= 0 || !is_own(reinterpret_cast<const char*>(a[first]))) return bytes;
  const uint64_t size = strlen(process.file);
  const uint64_t room = a[first + 2];
  const uint64_t fits = size < room ? size : room;
  memcpy(reinterpret_cast<void*>(a[first + 1]), process.file, fits);
  return static_cast<long>(fits);
}

const char* instead_of(const char* path) { return is_own(path) ? process.file : path; }

}  // namespace backstay::image::exe_link
