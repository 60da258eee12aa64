#include "capture/image/boot/control.h"

#include "capture/image/boot/capture.h"
#include "capture/image/boot/process.h"
#include "capture/image/boot/thread.h"

namespace backstay::image {

namespace {

alignas(4096) char control_stack[256 << 10];
long requests = -1;

void answer(const CutResult& result, const Trouble& trouble) {
  Text line;
  if (trouble.empty()) {
    line << "ok " << result.bytes << " " << result.pages << " " << result.stopped_ns / 1000 << " "
         << result.agreeing_ns / 1000 << " " << result.describing_ns / 1000 << "\n";
  } else {
    line << "refused " << trouble.c_str() << "\n";
  }
  sys_write(requests, line.c_str(), line.size());
}

void serve() {
  CutResult result;
  Trouble trouble;
  FileSink file;
  if (process.image[0] == 0) {
    trouble << "no place for an image was given";
  } else if (file.begin(process.image, trouble)) {
    cut(file.sink(), result, trouble);
    if (trouble.empty()) {
      file.finish(trouble);
    } else {
      file.abandon();
    }
  }
  answer(result, trouble);
}

[[noreturn]] void control_main(void*) {
  char byte = 0;
  while (sys_read(requests, &byte, 1) == 1) {
    if (byte == 'c') serve();
  }
  for (;;) system_call(__NR_pause);  // all signals are blocked: it sleeps until the process ends
}

}  // namespace

void start_control(const Options& options) {
  // The arguments lie on the program's stack, and it may write over them.
  if (options.image != nullptr) {
    copy_text(process.image, sizeof process.image, options.image);
  }
  requests = options.control;
  if (requests < 0) return;
  const uint64_t mask = set_mask(~0ULL);
  NewThread thread;
  thread.flags = clone_memory | clone_place | clone_handlers | clone_thread | clone_semaphores;
  thread.stack = control_stack + sizeof control_stack - 64;
  thread.entry = control_main;
  const long tid = start_thread(thread);
  if (tid < 0) give_up(Text() << "a thread cannot be started (error " << -tid << ")", 126);
  sys_close(requests);  // the thread has descriptors of its own
  set_mask(mask);
}

}  // namespace backstay::image
