#include "capture/image/boot/gate.h"

namespace backstay::image::gate {

namespace {

enum : uint32_t { free = 0, of_cut = 1, of_exec = 2 };
uint32_t state = free;
uint32_t wanted = 0;  // threads that want to replace the program
long holder = 0;      // the thread that does
uint32_t nested = 0;  // a handler of it does the same

bool take(uint32_t as, uint32_t& seen) {
  seen = free;
  return __atomic_compare_exchange_n(&state, &seen, as, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void give_back() {
  __atomic_store_n(&state, free, __ATOMIC_SEQ_CST);
  wake_all(&state);
}

}  // namespace

bool is_wanted() { return __atomic_load_n(&wanted, __ATOMIC_SEQ_CST) != 0; }

bool begin_cut() {
  uint32_t seen = 0;
  return !is_wanted() && take(of_cut, seen);
}

void end_cut() { give_back(); }

void begin_exec() {
  const long self = sys_thread_id();
  if (__atomic_load_n(&holder, __ATOMIC_ACQUIRE) == self) {
    ++nested;
    return;
  }
  __atomic_fetch_add(&wanted, 1, __ATOMIC_SEQ_CST);
  for (uint32_t seen = 0; !take(of_exec, seen);) wait_while(&state, seen);
  __atomic_store_n(&holder, self, __ATOMIC_RELEASE);
}

void end_exec() {
  if (nested > 0) {
    --nested;
    return;
  }
  __atomic_store_n(&holder, 0, __ATOMIC_RELEASE);
  __atomic_fetch_sub(&wanted, 1, __ATOMIC_SEQ_CST);
  give_back();
}

}  // namespace backstay::image::gate
