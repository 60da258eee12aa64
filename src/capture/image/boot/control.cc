#include "capture/image/boot/control.h"

#include "capture/image/boot/capture.h"
#include "capture/image/boot/companion.h"
#include "capture/image/boot/copy_sum.h"
#include "capture/image/boot/exec.h"
#include "capture/image/boot/handover.h"
#include "capture/image/boot/kept.h"
#include "capture/image/boot/process.h"
#include "capture/image/boot/rights.h"
#include "capture/image/boot/thread.h"
#include "capture/image/boot/watch.h"

namespace backstay::image {

namespace {

alignas(4096) char control_stack[256 << 10];
long requests = -1;

void answer(const CutResult& result, const Trouble& trouble) {
  Text line;
  if (result.refused == Refused::again) {
    line << "again\n";
  } else if (trouble.empty()) {
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

bool copy_piece(void* context, const void* bytes, uint64_t size) {
  auto*& to = *static_cast<uint8_t**>(context);
  copy_sum().copy(to, bytes, size);
  to += size;
  return true;
}

void fill(const Request& request, Answer& said, Trouble& trouble) {
  uint8_t* to = companion::pool(request.at, request.bytes, trouble);
  if (!trouble.empty()) return;
  copy_sum().reset();
  const bool read = read_cut(request.bytes, Visitor{&to, copy_piece});
  check_cut(read, trouble);
  if (!read && trouble.empty()) trouble << "the image has no such bytes";
  said.sum = copy_sum().digest();
}

CutResult result;
bool stopped = false;

void begin(Request& request, Answer& said, Trouble& trouble) {
  if (stopped) end_cut(result);
  result = CutResult();
  request.notes[notes_max - 1] = 0;
  if (companion::lent_bytes() == 0) {
    trouble << "no pool is lent";
    result.refused = Refused::again;
  } else {
    begin_cut({request.notes, request.tersely != 0, request.watches != 0, request.keeps != 0,
               request.bytes},
              result, trouble);
  }
  said.refused = static_cast<uint32_t>(result.refused);
  stopped = trouble.empty();
  said.bytes = result.bytes;
  said.kept_bytes = result.kept_bytes;
  said.agreeing_ns = result.agreeing_ns;
  said.describing_ns = result.describing_ns;
  said.contents = result.contents;
  said.table_bytes = result.table_bytes;
  copy_text(said.why, sizeof said.why, result.not_in_image);
}

void tell_kept(const Request& request, Answer& said) {
  const Row<kept::Piece>& pieces = kept::pieces();
  for (uint64_t i = 0; i < kept_max && request.at + i < pieces.size(); ++i) {
    const kept::Piece& piece = pieces[request.at + i];
    said.kept[i] = KeptChunk{piece.offset, piece.bytes};
  }
}

void end(Answer& said) {
  if (stopped) end_cut(result);
  stopped = false;
  said.stopped_ns = result.stopped_ns;
  said.bytes = companion::lent_bytes();
}

// Of a snapshot: until nobody asks any more.
[[noreturn]] void serve_copy(const Trouble& trouble) {
  static Request request;
  companion::answer(requests, trouble);
  long descriptor = -1;
  while (trouble.empty() && companion::next(requests, request, descriptor)) {
    Answer said{};
    Trouble wrong;
    const auto what = static_cast<Ask>(request.kind);
    if (what == Ask::fill) fill(request, said, wrong);
    if (what == Ask::kept) tell_kept(request, said);
    if (what != Ask::fill && what != Ask::kept) wrong << "this is a copy of the process";
    if (!wrong.empty()) said.refused = static_cast<uint32_t>(Refused::now);
    copy_text(said.why, sizeof said.why, wrong.c_str());
    companion::answer(requests, said);
  }
  sys_exit(0);
}

void fork_snapshot(long channel, Answer& said, Trouble& trouble) {
  if (!stopped || channel < 0) {
    trouble << "no cut is under way";
  } else {
    Refused refused = Refused::no;
    const long process = fork_cut(channel, refused, trouble);
    if (process == 0) {
      requests = channel;
      serve_copy(trouble);
    }
    if (!trouble.empty()) said.refused = static_cast<uint32_t>(refused);
    if (trouble.empty()) said.process = static_cast<uint32_t>(process);
  }
  if (channel >= 0) sys_close(channel);
}

void serve(Request& request, long descriptor) {
  static Answer said;
  said = Answer();
  Trouble trouble;
  switch (static_cast<Ask>(request.kind)) {
    case Ask::pool: companion::map_pool(descriptor, request, trouble); break;
    case Ask::cut: begin(request, said, trouble); break;
    case Ask::fill:
      if (!stopped) trouble << "no cut is under way";
      if (stopped) fill(request, said, trouble);
      break;
    case Ask::kept:
      if (!stopped) trouble << "no cut is under way";
      if (stopped && result.kept_bytes > 0) tell_kept(request, said);
      break;
    case Ask::snapshot: fork_snapshot(descriptor, said, trouble); break;
    case Ask::resume: end(said); break;
    default: trouble << "this process runs already"; break;
  }
  if (!trouble.empty() && said.refused == 0) said.refused = static_cast<uint32_t>(Refused::now);
  if (!trouble.empty()) copy_text(said.why, sizeof said.why, trouble.c_str());
  companion::answer(requests, said);
}

void serve_companion() {
  static Request request;
  long descriptor = -1;
  for (;;) {
    handover::wait(requests);
    if (!companion::next(requests, request, descriptor)) break;
    serve(request, descriptor);
  }
  if (stopped) end_cut(result);  // the program goes on without its companion
  stopped = false;
}

void serve_by_hand() {
  char byte = 0;
  for (;;) {
    handover::wait(requests);
    if (sys_read(requests, &byte, 1) != 1) break;
    if (byte == 'c') serve();
  }
}

bool by_companion = false;
uint32_t open = 0;
uint32_t alone = 0;  // 1: it has closed the program's descriptors; 2: it has the rights that it had

// This thread keeps no copy of the program's descriptors: what the program closes, from its first
// instruction on, shall be closed.
void close_others() {
  const long watcher = watch::descriptor() < 0 ? requests : watch::descriptor();
  const long low = requests < watcher ? requests : watcher;
  const long high = requests < watcher ? watcher : requests;
  if (low > 0) system_call(__NR_close_range, 0, low - 1, 0);
  if (low + 1 < high) system_call(__NR_close_range, low + 1, high - 1, 0);
  system_call(__NR_close_range, high + 1, ~0U, 0);
  __atomic_store_n(&alone, 1, __ATOMIC_RELEASE);
  wake_all(&alone);
}

[[noreturn]] void control_main(void*) {
  close_others();
  handover::open();
  wait_while(&open, 0);
  rights::take_as_control();
  __atomic_store_n(&alone, 2, __ATOMIC_RELEASE);
  wake_all(&alone);
  by_companion ? serve_companion() : serve_by_hand();
  handover::end();
  for (;;) system_call(__NR_pause);  // all signals are blocked: it sleeps until the process ends
}

}  // namespace

void start_control(const Options& options) {
  // The arguments lie on the program's stack, and it may write over them.
  if (options.image != nullptr) {
    copy_text(process.image, sizeof process.image, options.image);
  }
  requests = options.control;
  by_companion = options.companion;
  remember_options(options);
  if (requests < 0) return;
  const uint64_t mask = set_mask(~0ULL);
  NewThread thread;
  thread.flags = clone_memory | clone_place | clone_handlers | clone_thread | clone_semaphores;
  thread.stack = control_stack + sizeof control_stack - 64;
  thread.entry = control_main;
  const long tid = start_thread(thread);
  if (tid < 0) give_up(Text() << "a thread cannot be started (error " << -tid << ")", 126);
  sys_close(requests);  // the thread has descriptors of its own
  if (watch::descriptor() >= 0) sys_close(watch::descriptor());
  set_mask(mask);
}

void wait_for_control() {
  if (requests >= 0) wait_while(&alone, 0);
}

void open_control() {
  __atomic_store_n(&open, 1, __ATOMIC_RELEASE);
  wake_all(&open);
  if (requests >= 0) wait_while(&alone, 1);
}

}  // namespace backstay::image
