#include "capture/image/boot/queued_signals.h"

#include <signal.h>

#include "capture/image/boot/bring_back.h"
#include "capture/image/boot/posix_timers.h"
#include "capture/image/boot/thread.h"

namespace backstay::image::queued_signals {

namespace {

// The kernel's siginfo: nothing of it lies behind these words.
constexpr uint64_t words = 6;
struct Info {
  int32_t signal, error, code, zero;
  uint32_t sender, user;
  uint64_t value;
  uint64_t rest[2];
  uint8_t zeros[80];
};

constexpr long seize = 0x4206;  // of ptrace
constexpr long interrupt = 0x4207;
constexpr long peek = 0x4209;
constexpr uint32_t of_process = 1;
constexpr long any_child = 0x40000000;     // __WALL
constexpr long allow_tracer = 0x59616d61;  // PR_SET_PTRACER
constexpr int no_permission = 1;
constexpr int first_with_value = 32;  // that of libc's timers

// The cut that is under way. The other process shares this memory.
Tables* tables_of_cut = nullptr;
NotesWriter* notes_of_cut = nullptr;
long wrong = 0;

void look_at_queue(uint32_t tid, uint32_t flags) {
  struct {
    uint64_t first;
    uint32_t flags;
    int32_t count;
  } which{0, flags, 1};
  for (;; ++which.first) {
    Info info{};
    const long got = system_call(__NR_ptrace, peek, tid, address_of(&which), address_of(&info));
    if (got < 0) wrong = -got;
    if (got < 0) return;
    if (which.first == 0) notes_of_cut->begin("signals", flags == of_process ? 0 : tid);
    if (got == 0) break;
    // Our own request to stop may have been sent twice.
    if (info.code == SI_QUEUE && in_window(info.value, info.value)) continue;
    for (Timer& timer : tables_of_cut->timers) {  // one that has run off just now
      const bool posix = timer.kind == static_cast<uint32_t>(TimerKind::posix);
      const bool its = posix && info.code == SI_TIMER && info.sender == timer.id;
      if (its && timer.interval_ns == 0) timer.value_ns = 0;
    }
    uint64_t all[words];
    memcpy(all, &info, sizeof all);
    notes_of_cut->add_words(all, words);
  }
  notes_of_cut->add("\n");
}

// The other process. What it stops so goes on at its end.
void look(void*) {
  bool process = tables_of_cut->identity.pending != 0;
  for (const Thread& thread : tables_of_cut->threads) {
    if (wrong != 0 || (thread.pending == 0 && !process)) continue;
    wrong = -system_call(__NR_ptrace, seize, thread.tid);
    if (wrong != 0) break;
    system_call(__NR_ptrace, interrupt, thread.tid);
    system_call(__NR_wait4, thread.tid, 0, any_child);
    if (thread.pending != 0) look_at_queue(thread.tid, 0);
    if (process) look_at_queue(thread.tid, of_process);
    process = false;
  }
  for (;;) system_call(__NR_exit, 0);
}

void look_by_another() {
  alignas(16) static char stack[16 << 10];
  NewThread other;
  other.flags = clone_memory;
  other.stack = stack + sizeof stack;
  other.entry = look;
  wrong = 0;  // before the other one runs, which sets it too
  const long process = start_thread(other);
  if (process < 0) wrong = -process;
  if (process > 0) system_call(__NR_wait4, process, 0, any_child);
}

// These signals were meant for the life that was saved. A launcher ends its ranks by SIGTERM; if a
// version brought that signal back, it would end each life that goes on from it.
bool asks_to_end(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

// By the thread itself: nobody else may say what the kernel, or `kill`, has said.
void queue(const Info& info, bool to_thread) {
  const long self = sys_thread_id();
  const long failed = to_thread
                          ? system_call(__NR_rt_tgsigqueueinfo, system_call(__NR_getpid), self,
                                        info.signal, address_of(&info))
                          : system_call(__NR_rt_sigqueueinfo, self, info.signal, address_of(&info));
  if (failed == 0) return;
  give_up(Text() << "cannot restart: signal " << info.signal << " cannot be queued again (error "
                 << -failed << "); may more of them wait (ulimit -i)?",
          78);
}

// Sends them without what they tell: the image has no notes of them.
void send_by_mask(uint64_t pending, bool to_thread) {
  const long process = system_call(__NR_getpid);
  for (int signal = 1; signal <= static_cast<int>(signals); ++signal) {
    if ((pending >> (signal - 1) & 1) == 0) continue;
    if (to_thread) system_call(__NR_tgkill, process, sys_thread_id(), signal);
    if (!to_thread && !asks_to_end(signal)) system_call(__NR_kill, process, signal);
  }
}

void bring_back(const Tables& tables, uint64_t pending, uint32_t thread) {
  if (pending == 0) return;
  const char* at = find_note(tables, "signals", thread);
  if (at == nullptr) return send_by_mask(pending, thread != 0);
  uint64_t all[words];
  for (uint64_t count = 0; next_word(at, all[count]);) {
    count = (count + 1) % words;
    Info info{};
    memcpy(&info, all, sizeof all);
    const bool sent = info.code <= 0 && info.code != SI_TIMER && info.code != SI_SIGIO;
    if (sent && info.sender == tables.identity.pid) info.sender = new_thread_id(info.sender);
    const bool whole = count == 0 && (thread != 0 || !asks_to_end(info.signal));
    if (whole) queue(info, thread != 0);
  }
}

uint64_t all_pending(const Tables& tables) {
  uint64_t all = tables.identity.pending;
  for (const Thread& thread : tables.threads) all |= thread.pending;
  return all;
}

}  // namespace

void add_notes(Tables& tables, NotesWriter& notes, Trouble& trouble) {
  if (all_pending(tables) == 0) return;
  tables_of_cut = &tables;
  notes_of_cut = &notes;
  look_by_another();
  if (wrong == no_permission) {  // of Yama: a child of this process may look
    system_call(__NR_prctl, allow_tracer, system_call(__NR_getpid));
    look_by_another();
    system_call(__NR_prctl, allow_tracer, 0);
  }
  if (wrong == 0) return;
  posix_timers::take_signals(tables);
  if (all_pending(tables) >> (first_with_value - 1) == 0) return;
  trouble << "a real-time signal waits, and what it tells cannot be read here (ptrace, error "
          << wrong << ")";
}

void bring_back(const Tables& tables) { bring_back(tables, tables.identity.pending, 0); }

void bring_back(const Tables& tables, const Thread& thread) {
  bring_back(tables, thread.pending, thread.tid);
}

}  // namespace backstay::image::queued_signals
