#include "capture/image/boot/exec.h"

#include <linux/mman.h>
#include <linux/prctl.h>

#include "capture/image/boot/channel.h"
#include "capture/image/boot/contents.h"
#include "capture/image/boot/exe_link.h"
#include "capture/image/boot/files.h"
#include "capture/image/boot/gate.h"
#include "capture/image/boot/handover.h"
#include "capture/image/boot/lower_descriptors.h"
#include "capture/image/boot/lower_half.h"
#include "capture/image/boot/mpi_files.h"
#include "capture/image/boot/pages.h"
#include "capture/image/boot/process.h"
#include "capture/image/boot/program.h"
#include "capture/image/boot/stop.h"

namespace backstay::image {

namespace {

// One at a time, behind the gate: on a stack of its own, as a thread may have little.
alignas(4096) char exec_stack[128 << 10];
Program program;
Text numbers[3];
bool by_companion = false;
bool kernel_clock = false;
long owner = 0;   // the process that has a control thread: no child of it
long filter = 0;  // whether system calls were filtered at the start: the boot program's, too

constexpr uint64_t own_words = 28;

struct Exec {
  const Call* call;
  uint64_t mask;  // the program's
  const char* path = nullptr;
  const char** arguments = nullptr;
  uint64_t environment = 0;
};

// execveat: by a descriptor, or relative to one. False: it cannot be named by a path.
bool name_by_descriptor(const Call& call, Exec& exec) {
  static char found[path_max];
  const char* path = reinterpret_cast<const char*>(call.arguments[1]);
  const uint64_t flags = call.arguments[4];
  if (path == nullptr || (flags & ~uint64_t{AT_EMPTY_PATH}) != 0) return false;
  exec.path = path;
  const auto fd = static_cast<int32_t>(call.arguments[0]);
  if (path[0] == '/' || (fd == AT_FDCWD && path[0] != 0)) return true;
  Text link;
  link << "/proc/self/fd/" << uint64_t{static_cast<uint32_t>(fd)};
  if (path[0] == 0 && (flags & AT_EMPTY_PATH) == 0) return false;
  if (!read_link(link.c_str(), found, sizeof found)) return false;
  exec.path = found;
  FileStatus named;
  FileStatus opened;
  if (path[0] == 0) {  // removed, or another one by now
    return descriptor_status(fd, opened) && file_status(found, named) &&
           named.inode == opened.inode && named.device == opened.device;
  }
  const size_t size = strlen(found);
  if (size + 1 + strlen(path) >= sizeof found) return false;
  found[size] = '/';
  copy_text(found + size + 1, sizeof found - size - 1, path);
  return true;
}

bool read_call(Exec& exec) {
  const uint64_t* a = exec.call->arguments;
  const bool by_path = exec.call->number == __NR_execve;
  exec.path = reinterpret_cast<const char*>(a[0]);
  exec.arguments = reinterpret_cast<const char**>(a[by_path ? 1 : 2]);
  exec.environment = a[by_path ? 2 : 3];
  if (!by_path && !name_by_descriptor(*exec.call, exec)) return false;
  return exec.path != nullptr && exec.path[0] != 0 && strlen(exec.path) < path_max &&
         exec.arguments != nullptr && exec.arguments[0] != nullptr;
}

// What this says no to is the kernel's to start, or to refuse.
bool can_start(const Exec& exec) {
  static Trouble trouble;
  trouble.clear();
  program = Program();
  open_program_at(exec.path, program, trouble);
  if (program.fd >= 0) sys_close(program.fd);
  return trouble.empty() && system_call(__NR_faccessat, AT_FDCWD,
                                        address_of(program.elf.interpreter), 4 /* R_OK */) == 0;
}

// The signal of a cut that was given up would end the new program, which has no handler for it.
void drop_own_signal() {
  while (take_own_signal()) {
  }
}

struct Words {
  const char** words;
  uint64_t count = 0;
  void add(const char* word) { words[count++] = word; }
};

long become_boot(const Exec& exec, long control) {
  uint64_t count = 0;
  while (exec.arguments[count] != nullptr) ++count;
  const uint64_t bytes = (count + own_words) * sizeof(char*);
  const long room = sys_map(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (room < 0) return room;
  Words all{reinterpret_cast<const char**>(room)};
  for (Text& number : numbers) number.clear();
  numbers[0] << control;
  numbers[1].hex(exec.mask);
  all.add("backstay-boot");
  all.add(by_companion ? "--companion" : "--control");
  all.add(numbers[0].c_str());
  if (process.image[0] != 0) all.add("--image");
  if (process.image[0] != 0) all.add(process.image);
  if (kernel_clock) all.add("--no-vdso");
  if (lower_folder() != nullptr) {
    lower_descriptors::list(numbers[2]);
    all.add("--mpi");
    all.add(lower_folder());
    if (mpi_files::launcher() != nullptr) all.add("--launcher-mpi");
    if (mpi_files::launcher() != nullptr) all.add(mpi_files::launcher());
    all.add("--handed-in");
    all.add(numbers[2].c_str());
  }
  if (channel_name() != nullptr) all.add("--channel");
  if (channel_name() != nullptr) all.add(channel_name());
  if (contents::patterns() != nullptr) all.add("--contents");
  if (contents::patterns() != nullptr) all.add(contents::patterns());
  if (without_scan) all.add("--no-scan");
  all.add("--mask");
  all.add(numbers[1].c_str());
  all.add("--program");
  all.add(exec.path);
  all.add("--");
  memcpy(all.words + all.count, exec.arguments, (count + 1) * sizeof(char*));
  const long failed = system_call(__NR_execve, address_of("/proc/self/exe"), room,
                                  static_cast<long>(exec.environment));
  sys_unmap(static_cast<uint64_t>(room), bytes);
  return failed;
}

// Returns where the kernel is to do it.
void replace(void* context) {
  Exec& exec = *static_cast<Exec*>(context);
  drop_own_signal();
  if (read_call(exec) && can_start(exec)) {
    long line = -1;
    const long control = handover::take(line);
    if (control >= 0) {
      become_boot(exec, control);
      sys_close(control);
      sys_close(line);
    }
  }
}

void call_on(char* stack_end, void (*function)(void*), void* argument) {
  __asm__ volatile(
      "mov %%rsp, %%rbx\n\t"
      "mov %[stack], %%rsp\n\t"
      "call *%[function]\n\t"
      "mov %%rbx, %%rsp"
      : "+D"(argument)
      : [stack] "r"(stack_end), [function] "r"(function)
      : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
}

// Names are tried along PATH, and most are not there. Also where the path is no memory at all.
bool may_exist(const Call& call) {
  return call.number != __NR_execve ||
         system_call(__NR_faccessat, AT_FDCWD, static_cast<long>(call.arguments[0]),
                     1 /* X_OK */) == 0;
}

}  // namespace

void remember_options(const Options& options) {
  by_companion = options.companion;
  kernel_clock = options.kernel_clock;
  owner = system_call(__NR_getpid);
  filter = system_call(__NR_prctl, PR_GET_SECCOMP);
}

long replace_program(const Call& asked) {
  // A filter of system calls that the program has set could end the boot program, which makes
  // others than the program.
  if (system_call(__NR_prctl, PR_GET_SECCOMP) != filter || !may_exist(asked)) {
    return by_kernel(asked);
  }
  const Call call = exe_link::with_own_file(asked);
  if (system_call(__NR_getpid) != owner) return by_kernel(call);
  Exec exec{&call, set_mask(~0ULL)};
  gate::begin_exec();
  call_on(exec_stack + sizeof exec_stack - 64, replace, &exec);
  set_mask(exec.mask);
  const long failed = by_kernel(call);
  gate::end_exec();
  return failed;
}

}  // namespace backstay::image
