#include "capture/image/boot/stop.h"

#include "capture/image/boot/gate.h"
#include "capture/image/boot/interrupted.h"
#include "capture/image/boot/lower_half.h"
#include "capture/image/boot/maps.h"

namespace backstay::image {

namespace {

constexpr uint64_t patience_ns = 5'000'000'000;
constexpr int get_tid_address = 40;  // PR_GET_TID_ADDRESS
constexpr uint64_t action_flags = 0x4 | 0x10000000 | 0x08000000 | 0x04000000;
// SA_SIGINFO | SA_RESTART | SA_ONSTACK | SA_RESTORER

Parked parked[threads_max];
uint32_t parked_count = 0;  // slots that are complete
uint32_t claimed = 0;
uint32_t generation = 0;  // odd while a cut is under way

struct Asked {
  uint32_t tid;
  Call call;
};
Asked asked[threads_max];
uint32_t asked_count = 0;

int signal_used = 0;
bool lent = false;    // our handler is there
KernelAction before;  // what the program, or its libc, has for that signal

// The kernel's siginfo, as far as it is used here.
struct Info {
  int32_t signal, error, code, zeros;
  int32_t process, user;
  const void* value;
  uint8_t rest[96];
};
constexpr int32_t code_queue = -1;  // SI_QUEUE

bool is_ours(const Info& info) { return info.code == code_queue && info.value == parked; }

void fill_slot(Parked& self, Context* context) {
  self.tid = static_cast<uint32_t>(sys_thread_id());
  self.context = context;
  self.fs = get_base(get_fs);
  self.gs = get_base(get_gs);
  system_call(__NR_prctl, get_tid_address, address_of(&self.clear_tid));
  system_call(__NR_get_robust_list, 0, address_of(&self.robust_list),
              address_of(&self.robust_bytes));
  rights::read_own(self.rights);
}

// Runs on the program's thread, on its stack; all signals are blocked.
void park(int signal, Info* info, Context* context) {
  if (!is_ours(*info)) {  // of the program's own, in the very moment of a cut
    using Function = void (*)(int, Info*, Context*);
    if (before.handler > 1) reinterpret_cast<Function>(before.handler)(signal, info, context);
    return;
  }
  const uint32_t mine = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
  if (mine % 2 == 0) return;        // of a cut that was given up
  if (is_of_lower_half(0)) return;  // it was so new that nothing told it from the program's
  const uint32_t slot = __atomic_fetch_add(&claimed, 1, __ATOMIC_ACQ_REL);
  if (slot < threads_max) fill_slot(parked[slot], context);
  __atomic_fetch_add(&parked_count, 1, __ATOMIC_ACQ_REL);
  wake_all(&parked_count);
  wait_while(&generation, mine);
}

extern "C" [[gnu::naked, gnu::used]] void backstay_restorer() {
  __asm__ volatile("mov $15, %eax\n\tsyscall");  // rt_sigreturn
}

struct Status {
  uint64_t blocked = 0;
  bool ended = false;
};

Status status_of(uint64_t tid) {
  Text path;
  path << "/proc/self/task/" << tid << "/status";
  Lines lines(path.c_str());
  Status status;
  while (const char* line = lines.next()) {
    if (begins_with(line, "State:\tZ") || begins_with(line, "State:\tX")) status.ended = true;
    if (!begins_with(line, "SigBlk:\t")) continue;
    const char* at = line + 8;
    status.blocked = read_hex(at);
  }
  return status;
}

bool is_free(int signal) {
  KernelAction action;
  return sys_action(signal, nullptr, &action) == 0 && action.handler == 0;
}

// glibc keeps 32 and 33 for itself and never lets a program block them for long; it uses them for
// pthread_cancel and for setuid in threads. Its handler is lent for the time of a cut, and gets
// what is not ours. After these the highest ones that the program has no handler for.
int choose_signal() {
  uint64_t blocked = 0;
  const auto self = static_cast<uint64_t>(sys_thread_id());
  each_number("/proc/self/task", [&](uint64_t tid) {
    if (tid != self && !is_of_lower_half(static_cast<long>(tid))) {
      blocked |= status_of(tid).blocked;
    }
  });
  for (int i = 0; i < 33; ++i) {
    const int signal = i == 0 ? 33 : i == 1 ? 32 : 66 - i;
    const bool is_blocked = (blocked >> (signal - 1) & 1) != 0;
    if (!is_blocked && (signal <= 33 || is_free(signal))) return signal;
  }
  return 33;  // blocked by a thread, perhaps for a moment only
}

const KernelAction& our_action() {
  static const KernelAction action{reinterpret_cast<uint64_t>(&park), action_flags,
                                   reinterpret_cast<uint64_t>(&backstay_restorer), ~0ULL};
  return action;
}

// True where our handler was not there any more: libc has just set its own.
bool lend_handler() {
  KernelAction now;
  sys_action(signal_used, nullptr, &now);
  if (now.handler == our_action().handler) return false;
  before = now;
  lent = true;
  sys_action(signal_used, &our_action());
  return true;
}

void give_handler_back() {
  if (!lend_handler()) sys_action(signal_used, &before);
  lent = false;
}

void ask(uint32_t tid) {
  const auto process = static_cast<int32_t>(system_call(__NR_getpid));
  Info info{signal_used, 0, code_queue, 0, process, 0, parked, {}};
  system_call(__NR_rt_tgsigqueueinfo, process, tid, signal_used, address_of(&info));
}

bool is_parked(uint32_t tid) {
  const uint32_t count = __atomic_load_n(&parked_count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count && i < threads_max; ++i) {
    if (parked[i].tid == tid) return true;
  }
  return false;
}

void ask_again() {
  for (uint32_t i = 0; i < asked_count; ++i) {
    if (!is_parked(asked[i].tid)) ask(asked[i].tid);
  }
}

bool was_asked(uint64_t tid) {
  for (uint32_t i = 0; i < asked_count; ++i) {
    if (asked[i].tid == tid) return true;
  }
  return false;
}

// Asks every thread that was not asked yet. Returns how many there are that have not ended.
uint32_t ask_all(bool& leader_ended, bool& anyone_new) {
  const long process = system_call(__NR_getpid);
  const auto self = static_cast<uint64_t>(sys_thread_id());
  uint32_t living = 0;
  anyone_new = false;
  each_number("/proc/self/task", [&](uint64_t tid) {
    if (tid == self || is_of_lower_half(static_cast<long>(tid))) return;
    if (status_of(tid).ended) {
      leader_ended = leader_ended || tid == static_cast<uint64_t>(process);
      return;
    }
    ++living;
    if (was_asked(tid) || asked_count == threads_max) return;
    anyone_new = true;
    asked[asked_count++] = Asked{static_cast<uint32_t>(tid), call_of(tid)};
    ask(static_cast<uint32_t>(tid));
  });
  return living;
}

// A short sleep that ends when a thread parks.
void wait_for_parking(uint32_t seen) {
  const uint64_t time[2] = {0, 2'000'000};
  system_call(__NR_futex, address_of(&parked_count), futex_wait_private, seen, address_of(time));
}

const Call& asked_call(uint32_t tid) {
  static const Call none;
  for (uint32_t i = 0; i < asked_count; ++i) {
    if (asked[i].tid == tid) return asked[i].call;
  }
  return none;
}

void name_those_that_run(Trouble& trouble) {
  for (uint32_t i = 0; i < asked_count; ++i) {
    if (!is_parked(asked[i].tid) && trouble.empty()) {
      trouble << "thread " << uint64_t{asked[i].tid} << " does not stop: it blocks all signals, or "
              << "waits for a child that it has just started";
    }
  }
}

}  // namespace

bool take_own_signal() {
  if (signal_used == 0) return false;
  const uint64_t set = 1ULL << (signal_used - 1);
  const uint64_t now[2] = {0, 0};
  Info info{};
  const long got = system_call(__NR_rt_sigtimedwait, address_of(&set), address_of(&info),
                               address_of(now), sizeof set);
  if (got <= 0 || is_ours(info)) return got > 0;
  system_call(__NR_rt_tgsigqueueinfo, system_call(__NR_getpid), sys_thread_id(), signal_used,
              address_of(&info));
  return false;
}

void stop_threads(Stopped& stopped, Trouble& trouble) {
  if (!lent) signal_used = choose_signal();  // a cut that was given up left it there
  parked_count = claimed = asked_count = 0;
  __atomic_fetch_add(&generation, 1, __ATOMIC_ACQ_REL);
  lend_handler();
  stopped.signal = static_cast<uint64_t>(signal_used);
  const uint64_t end = now_ns(1) + patience_ns;
  for (;;) {
    bool anyone_new = false;
    const uint32_t seen = __atomic_load_n(&parked_count, __ATOMIC_ACQUIRE);
    const uint32_t living = ask_all(stopped.leader_ended, anyone_new);
    if (!anyone_new && seen >= living) break;
    if (gate::is_wanted()) {
      trouble << exec_under_way;
      resume_threads(stopped);
      return;
    }
    if (now_ns(1) > end || asked_count == threads_max) {
      name_those_that_run(trouble);
      resume_threads(stopped);
      return;
    }
    wait_for_parking(seen);
    if (lend_handler()) ask_again();
  }
  stopped.action = before;
  stopped.threads = parked;
  stopped.count = parked_count;
  for (uint64_t i = 0; i < stopped.count; ++i) {
    repeat_call(*parked[i].context, parked[i].tid, asked_call(parked[i].tid));
  }
}

void resume_threads(const Stopped& stopped) {
  // The handler must stay where a thread has not stopped: its signal is still under way.
  if (stopped.threads != nullptr) give_handler_back();
  __atomic_fetch_add(&generation, 1, __ATOMIC_ACQ_REL);
  wake_all(&generation);
}

}  // namespace backstay::image
