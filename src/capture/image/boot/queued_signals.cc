#include "capture/image/boot/queued_signals.h"

#include <signal.h>

#include "capture/image/boot/posix_timers.h"
#include "capture/image/boot/thread.h"

namespace backstay::image::queued_signals {

namespace {

// The kernel's siginfo: nothing of it lies behind these 48 bytes.
struct Info {
  int32_t signal, error, code, zero;
  int32_t sender;  // or the number of a timer
  uint32_t user;
  uint64_t value;
  uint64_t rest[2];
};
static_assert(sizeof(Info) == 48);
constexpr uint64_t words = sizeof(Info) / 8;
struct Told {
  Info info;
  uint8_t zeros[80];
};

constexpr long detach = 17;  // of ptrace
constexpr long seize = 0x4206;
constexpr long interrupt = 0x4207;
constexpr long peek = 0x4209;
constexpr uint32_t of_process = 1;
constexpr long any_child = 0x40000000;      // __WALL
constexpr long allow_tracer = 0x59616d61;  // PR_SET_PTRACER
constexpr int no_permission = 1;
constexpr int first_real_time = 34;  // those before are libc's

struct Looking {
  Tables* tables;
  NotesWriter* notes;
  long wrong;
  uint32_t begins;
};

// A timer's signal comes by the timer. Our own request to stop may have been sent twice.
bool is_to_come_back(const Info& info, Tables& tables) {
  if (info.code == SI_QUEUE && in_window(info.value, info.value)) return false;
  return info.code != SI_TIMER ||
         !posix_timers::run_off_at_once(tables, static_cast<uint32_t>(info.sender));
}

void add_signal(const Info& info, NotesWriter& notes) {
  Text text;
  for (uint64_t i = 0; i < words; ++i) {
    text.hex(reinterpret_cast<const uint64_t*>(&info)[i]) << " ";
  }
  notes.add(text.c_str());
}

void look_at_queue(Looking& looking, uint32_t tid, uint32_t flags) {
  struct {
    uint64_t first;
    uint32_t flags;
    int32_t count;
  } which{0, flags, 1};
  for (;; ++which.first) {
    Told told{};
    const long got = system_call(__NR_ptrace, peek, tid, address_of(&which), address_of(&told));
    if (got < 0) looking.wrong = -got;
    if (got < 0) return;
    if (which.first == 0) looking.notes->begin("signals", flags == of_process ? 0 : tid);
    if (got == 0) break;
    if (is_to_come_back(told.info, *looking.tables)) add_signal(told.info, *looking.notes);
  }
  looking.notes->add("\n");
}

void look_at_thread(Looking& looking, uint32_t tid, bool own, bool process) {
  looking.wrong = -system_call(__NR_ptrace, seize, tid);
  if (looking.wrong != 0) return;
  system_call(__NR_ptrace, interrupt, tid);
  system_call(__NR_wait4, tid, 0, any_child);
  if (own) look_at_queue(looking, tid, 0);
  if (process) look_at_queue(looking, tid, of_process);
  system_call(__NR_ptrace, detach, tid);
}

// The other process.
void look(void* argument) {
  auto& looking = *static_cast<Looking*>(argument);
  wait_while(&looking.begins, 0);
  bool process = looking.tables->identity.pending != 0;
  for (const Thread& thread : looking.tables->threads) {
    if (looking.wrong != 0) break;
    if (thread.pending == 0 && !process) continue;
    look_at_thread(looking, thread.tid, thread.pending != 0, process);
    process = false;
  }
  for (;;) system_call(__NR_exit, 0);
}

// 0, or an error. A kernel with Yama may have to be told who looks.
long look_by_another(Looking& looking, bool allow) {
  alignas(16) static char stack[16 << 10];
  looking.wrong = 0;
  looking.begins = 0;
  NewThread other;
  other.flags = clone_memory;
  other.stack = stack + sizeof stack;
  other.entry = look;
  other.argument = &looking;
  const long process = start_thread(other);
  if (process < 0) return -process;
  if (allow) system_call(__NR_prctl, allow_tracer, process);
  __atomic_store_n(&looking.begins, 1, __ATOMIC_RELEASE);
  wake_all(&looking.begins);
  system_call(__NR_wait4, process, 0, any_child);
  if (allow) system_call(__NR_prctl, allow_tracer, 0);
  return looking.wrong;
}

// These signals were meant for the life that was saved. A launcher ends its ranks by SIGTERM; if a
// version brought that signal back, it would end each life that goes on from it.
bool asks_to_end(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

// What the process has sent to itself comes from itself.
bool has_sender(const Info& info) {
  return info.code <= 0 && info.code != SI_TIMER && info.code != SI_SIGIO;
}

// By the thread itself: nobody else may say what the kernel, or `kill`, has said.
void queue(Told& told, const Tables& tables, bool to_thread) {
  const long process = system_call(__NR_getpid);
  const long self = sys_thread_id();
  Info& info = told.info;
  const bool own = has_sender(info) && info.sender == static_cast<int32_t>(tables.identity.pid);
  if (own) info.sender = static_cast<int32_t>(process);
  const long wrong =
      to_thread
          ? system_call(__NR_rt_tgsigqueueinfo, process, self, info.signal, address_of(&told))
          : system_call(__NR_rt_sigqueueinfo, self, info.signal, address_of(&told));
  if (wrong == 0) return;
  give_up(Text() << "cannot restart: signal " << info.signal << " cannot be queued again (error "
                 << -wrong << "); more may wait at once by `ulimit -i`",
          78);
}

// From an image without notes of them: without what they tell.
void queue_by_mask(uint64_t pending, const Tables& tables, bool to_thread) {
  for (int signal = 1; signal <= static_cast<int>(signals); ++signal) {
    if ((pending >> (signal - 1) & 1) == 0 || (!to_thread && asks_to_end(signal))) continue;
    Told told{};
    told.info.signal = signal;
    told.info.code = to_thread ? SI_TKILL : SI_USER;
    told.info.sender = static_cast<int32_t>(tables.identity.pid);
    queue(told, tables, to_thread);
  }
}

void bring_back(const Tables& tables, uint64_t pending, uint32_t thread) {
  if (pending == 0) return;
  const char* at = find_note(tables, "signals", thread);
  if (at == nullptr) return queue_by_mask(pending, tables, thread != 0);
  while (*at != 0 && *at != '\n') {
    Told told{};
    uint64_t all[words];
    for (uint64_t& word : all) {
      word = read_hex(at);
      if (*at == ' ') ++at;
    }
    memcpy(&told.info, all, sizeof all);
    if (thread == 0 && asks_to_end(told.info.signal)) continue;
    queue(told, tables, thread != 0);
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
  Looking looking{&tables, &notes, 0, 0};
  long wrong = look_by_another(looking, false);
  if (wrong == no_permission) wrong = look_by_another(looking, true);
  if (wrong == 0) return;
  posix_timers::take_signals(tables);
  if (all_pending(tables) >> (first_real_time - 1) == 0) return;
  trouble << "a real-time signal waits, and what it tells cannot be read here (ptrace, error "
          << wrong << ")";
}

void bring_back(const Tables& tables) { bring_back(tables, tables.identity.pending, 0); }

void bring_back(const Tables& tables, const Thread& thread) {
  bring_back(tables, thread.pending, thread.tid);
}

}  // namespace backstay::image::queued_signals
