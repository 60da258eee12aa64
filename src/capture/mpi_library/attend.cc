#include "capture/mpi_library/attend.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include "capture/mpi_library/again.h"
#include "capture/mpi_library/renew.h"
#include "capture/mpi_library/requests.h"
#include "capture/mpi_library/take_in.h"

namespace backstay::mpi {

namespace {

using lower::CutOrder;
using lower::Situation;

// Inside of what a cut or a restart makes the library do: its own calls are not held.
bool attending = false;

lower::Channel& shared() { return lower::channel(); }
uint32_t attention() { return __atomic_load_n(&shared().attention, __ATOMIC_ACQUIRE); }
CutOrder order() {
  if ((attention() & lower::attend_cut) == 0) return CutOrder::none;
  return static_cast<CutOrder>(__atomic_load_n(&shared().order, __ATOMIC_ACQUIRE));
}
bool is_held() { return order() >= CutOrder::stop; }

long system_call(long number, const void* a, long b, long c, const void* d = nullptr) {
  register const void* timeout __asm__("r10") = d;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(timeout)
                   : "rcx", "r11", "memory");
  return result;
}

// How often a thread that waits has slept in vain.
uint32_t naps = 0;

uint32_t said() { return __atomic_load_n(&shared().said, __ATOMIC_ACQUIRE); }

// Sleeps until the companion says more than `seen`, which was read before all else, at most so
// long.
void sleep(uint32_t seen, long ns) {
  const struct { long seconds, ns; } at_most{0, ns};
  system_call(SYS_futex, &shared().said, FUTEX_WAIT, seen, &at_most);
}

constexpr long shortest_ns = 16'000;

// In a cut: a message that arrives wakes nobody. Each time in vain it sleeps longer, 2 ms at most.
void nap(uint32_t seen) {
  constexpr uint32_t doublings_max = 7;
  const long ns = shortest_ns << naps;
  if (naps < doublings_max) ++naps;
  const Unlocked others;
  sleep(seen, ns);
}

void set_calls(uint32_t calls) {
  __atomic_store_n(&own_caller().calls, calls, __ATOMIC_SEQ_CST);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void set(Situation situation) {
  const auto now = static_cast<uint32_t>(situation);
  if (__atomic_load_n(&own_caller().situation, __ATOMIC_RELAXED) == now) return;
  naps = 0;
  __atomic_store_n(&own_caller().situation, now, __ATOMIC_RELEASE);
  tell();
}

// Takes in what has arrived. Counted as a call meanwhile, so that the boot program does not stop
// the thread inside of the lower half.
void take_in_once() {
  const Undivided undivided;
  attending = true;
  set_calls(1);
  // Whoever orders "close" and then finds no call takes the image.
  const bool has_news = order() != CutOrder::close && take_in_all();
  set_calls(0);
  attending = false;
  if (!has_news) return;
  naps = 0;
  tell();
}

// Counted as a call: no image is taken of handles that are half renewed.
void renew() {
  const Undivided undivided;
  attending = true;
  set_calls(1);
  register_barrier();
  // The handles first: they are what all else is made of.
  begin_again();
  renew_counters();
  renew_requests();
  set_calls(0);
  attending = false;
  __atomic_and_fetch(&shared().attention, ~lower::attend_renew, __ATOMIC_SEQ_CST);
}

// Outside of all calls. While a cut says "stand".
void hold() {
  const char* why = is_held() ? why_not_renewable() : nullptr;
  if (why != nullptr) hold_back(Open::what_stands, why);
  while (is_held()) {
    const uint32_t seen = said();
    if (order() == CutOrder::close) {
      set(Situation::closed);
      const Unlocked others;
      system_call(SYS_futex, &shared().order, FUTEX_WAIT, static_cast<long>(CutOrder::close));
    } else {
      take_in_once();
      set(Situation::stands);
      nap(seen);
    }
  }
  if (why != nullptr) let_go(Open::what_stands);
}

// Outside of all calls: does all that is asked for, until the program may go on.
void attend() {
  if ((attention() & lower::attend_renew) != 0) renew();
  hold();
  set(order() == CutOrder::none ? Situation::none : Situation::runs);
}

bool may_go();

// Counted again, behind what was done outside.
void enter_again() {
  set_calls(1);
  while (!may_go()) {
    set_calls(0);
    attend();
    set_calls(1);
  }
}

bool may_go() { return (attention() & lower::attend_renew) == 0 && !is_held(); }

}  // namespace

// The companion makes all threads pass a barrier when it has set `attention`.
void register_barrier() {
  constexpr long register_global_expedited = 4;
  const auto* command = reinterpret_cast<const void*>(register_global_expedited);
  if (system_call(SYS_membarrier, command, 0, 0) != 0) {
    refuse("this kernel has no barrier for all threads (membarrier)");
  }
}

void yield() { system_call(SYS_sched_yield, nullptr, 0, 0); }
void rest() { sleep(said(), shortest_ns); }

void tell() {
  if (attending) return;
  __atomic_add_fetch(&shared().told, 1, __ATOMIC_SEQ_CST);
  system_call(SYS_futex, &shared().told, FUTEX_WAKE, 1);
}

void enter_asked() {
  if (own_caller().calls > 1 || attending) return;  // in a callback
  set_calls(0);
  attend();
  enter_again();
}

namespace {

class Wish {
 public:
  void say(uint64_t communicator);
  bool is_granted() const;

 private:
  uint32_t number_ = 0;  // 0: it has said nothing
};

// Says what it wants, once for each time that it is held, and in each process.
void Wish::say(uint64_t communicator) {
  if (number_ != 0 && own_caller().wish_number == number_) return;
  lower::Caller& caller = own_caller();
  caller.wish = communicator;
  number_ = caller.wish_number = caller.wish_number + 1;
  __atomic_store_n(&caller.situation, static_cast<uint32_t>(Situation::wants), __ATOMIC_RELEASE);
  naps = 0;
  tell();
}

bool Wish::is_granted() const {
  return number_ != 0 && order() != CutOrder::none &&
         __atomic_load_n(&own_caller().granted, __ATOMIC_ACQUIRE) == number_;
}

// Outside of all calls: until the companion allows a collective call, or nothing is asked for.
bool wait_for_permission(uint64_t communicator) {
  Wish wish;
  for (;;) {
    const uint32_t seen = said();
    if (order() == CutOrder::none || wish.is_granted()) return wish.is_granted();
    if ((attention() & lower::attend_renew) != 0) renew();
    if (is_held()) {
      hold();
      wish = Wish();
    } else {
      wish.say(communicator);
      take_in_once();
      nap(seen);
    }
  }
}

}  // namespace

// Where the clock was raised before `attention` was read, the companion may have seen that; then it
// grants the call at once. Else it has not, and counts it when it grants it.
void Collective::begin_asked(bool is_counted) {
  for (bool is_granted = false; !is_granted && (is_asked() || !is_counted);) {
    if (is_counted) lower::channel().clock[of_->row].begun = --of_->begun;
    set_inside(0);
    set_calls(0);
    if ((attention() & lower::attend_renew) != 0) renew();
    is_granted = wait_for_permission(of_->number);
    set_inside(1);
    count();
    is_counted = true;
    set_calls(1);
  }
  set(order() == CutOrder::none ? Situation::none : Situation::runs);
}

void Awaited::add(int world) {
  if (count_ == lower::awaited_max) {
    peer_[0] = lower::awaited_any;
    count_ = 1;
  } else if (count_ == 0 || peer_[0] != lower::awaited_any) {
    peer_[count_++] = static_cast<uint32_t>(world);
  }
}

void Awaited::add_any() {
  peer_[0] = lower::awaited_any;
  count_ = 1;
}

void Awaited::publish() const {
  lower::Caller& caller = own_caller();
  bool same =
      caller.awaited_count == count_ && caller.situation == static_cast<uint32_t>(Situation::waits);
  for (uint32_t i = 0; i < count_; ++i) {
    same = same && caller.awaited[i] == peer_[i];
    caller.awaited[i] = peer_[i];
  }
  caller.awaited_count = count_;
  __atomic_store_n(&caller.situation, static_cast<uint32_t>(Situation::waits), __ATOMIC_RELEASE);
  if (same) return;
  naps = 0;
  tell();
}

void wait_turn(const Awaited& awaited) {
  if (own_caller().calls > 1 || attending) return give_way();
  set_calls(0);
  const uint32_t seen = said();
  if (!may_go()) attend();
  if (order() == CutOrder::run_on) {
    take_in_once();
    awaited.publish();
    nap(seen);
  } else {
    give_way();
  }
  enter_again();
}

void found_nothing(const Awaited& awaited) {
  if (own_caller().calls > 1 || attending || order() != CutOrder::run_on) return;
  set_calls(0);
  take_in_once();
  awaited.publish();
  enter_again();
}

void stop_waiting() {
  if (attending || own_caller().situation != static_cast<uint32_t>(Situation::waits)) return;
  set(order() == CutOrder::none ? Situation::none : Situation::runs);
}

}  // namespace backstay::mpi
