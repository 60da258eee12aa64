// backstay-boot: starts a dynamic program so that it can be saved, or brings a saved one back.
//
//   backstay-boot [--image FILE] [--control FD] [--no-vdso] -- PROGRAM ARGUMENTS...
//   backstay-boot --restore FILE [--image FILE] [--control FD]
//   backstay-boot --companion FD -- PROGRAM ARGUMENTS...
//   backstay-boot --companion FD --bring-back
//
// --mpi FOLDER starts a program that uses MPI with a lower half, which lies in FOLDER with our MPI
// libraries (docs/protocol/lower-half.md); a restart of such a program needs it again.
// --channel PATH: memory that it shares with the companion (channel.h).
// --contents PATTERNS: files whose contents an image holds (contents.h).
// --no-scan finds pages as on kernels before 6.7.
//
// It is static, has no libc, and lies at a fixed address of its own (window.h): the program that it
// starts has the rest of the address space, with its own interpreter, libc, heap and threads. Its
// exit code is the program's; its own troubles end with 126 or 127, as a shell's do, and 78 where a
// restart is refused.
#include "capture/image/boot/channel.h"
#include "capture/image/boot/contents.h"
#include "capture/image/boot/control.h"
#include "capture/image/boot/launch.h"
#include "capture/image/boot/options.h"
#include "capture/image/boot/restore.h"

namespace backstay::image {

namespace {
alignas(4096) char boot_stack[256 << 10];
}

extern "C" [[noreturn, gnu::used]] void boot_main(uint64_t* stack) {
  const Start start = read_start(stack);
  Options options;
  Trouble trouble;
  read_options(start, options, trouble);
  contents::fit(options.contents, trouble);
  if (!trouble.empty()) give_up(trouble, 126);
  name_channel(options.channel);
  if (options.restore != nullptr || options.bring_back) restore(options, start);
  launch(options, start);
}

// The kernel's stack becomes the program's, so the boot program works on one of its own.
// NOLINTNEXTLINE: the linker's name.
extern "C" [[gnu::naked, gnu::used, noreturn]] void _start() {
  __asm__ volatile(
      "mov %%rsp, %%rdi\n\t"
      "lea %0, %%rsp\n\t"
      "xor %%ebp, %%ebp\n\t"
      "call boot_main\n\t"
      "ud2"
      :
      : "m"(boot_stack[sizeof boot_stack - 64]));
}

}  // namespace backstay::image
