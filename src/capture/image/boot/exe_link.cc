#include "capture/image/boot/exe_link.h"

#include "capture/image/boot/files.h"
#include "capture/image/boot/process.h"

namespace backstay::image::exe_link {

namespace {

// /proc/self/exe, /proc/thread-self/exe and /proc/PID/exe. Not those of the program's parent and
// children: they may have become other programs.
bool is_own(const char* path) {
  constexpr char folder[] = "/proc/";
  if (process.own_file[0] == 0 || !begins_with(path, folder)) return false;
  const char* at = path + sizeof folder - 1;
  if (same_text(at, "self/exe") || same_text(at, "thread-self/exe")) return true;
  if (*at < '1' || *at > '9') return false;
  const uint64_t id = read_decimal(at);
  return same_text(at, "/exe") && id == static_cast<uint64_t>(system_call(__NR_getpid));
}

// In a chroot, and after a rename, another file may have the name.
bool is_where_it_was() {
  FileStatus now;
  return file_status(process.own_file, now) && now.device == process.own_device &&
         now.inode == process.own_inode;
}

// The kernel has looked at as much of the caller's memory as its own answer took.
bool may_be_written(uint64_t to, uint64_t bytes) {
  return system_call(__NR_getrandom, static_cast<long>(to), static_cast<long>(bytes), 0) ==
         static_cast<long>(bytes);
}

long answer(const Call& call) {
  constexpr long no_memory_there = -14;  // EFAULT
  const uint64_t* a = call.arguments;
  const int path_at = call.number == __NR_readlinkat ? 1 : 0;
  const long bytes = by_kernel(call);
  if (bytes <= 0 || !is_own(reinterpret_cast<const char*>(a[path_at]))) return bytes;
  const uint64_t to = a[path_at + 1];
  const auto room = static_cast<uint32_t>(a[path_at + 2]);  // the kernel's int
  const uint64_t size = strlen(process.own_file);
  const uint64_t fits = size < room ? size : room;
  if (fits > static_cast<uint64_t>(bytes) && !may_be_written(to, fits)) return no_memory_there;
  memcpy(reinterpret_cast<void*>(to), process.own_file, fits);
  return static_cast<long>(fits);
}

}  // namespace

// A handler of the program's would stand on frames of the boot program, which no image may hold.
long read(const Call& call) {
  const uint64_t mask = set_mask(~0ULL);
  const long answered = answer(call);
  set_mask(mask);
  return answered;
}

Call with_own_file(const Call& call) {
  Call changed = call;
  if (call.number != __NR_execve) return changed;
  if (is_own(reinterpret_cast<const char*>(call.arguments[0])) && is_where_it_was()) {
    changed.arguments[0] = static_cast<uint64_t>(address_of(process.own_file));
  }
  return changed;
}

}  // namespace backstay::image::exe_link
