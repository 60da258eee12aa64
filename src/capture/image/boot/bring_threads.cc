#include <linux/mman.h>
#include <linux/prctl.h>

#include "capture/image/boot/areas.h"
#include "capture/image/boot/attributes.h"
#include "capture/image/boot/bring_back.h"
#include "capture/image/boot/control.h"
#include "capture/image/boot/mutexes.h"
#include "capture/image/boot/personality.h"
#include "capture/image/boot/queued_signals.h"
#include "capture/image/boot/rights.h"
#include "capture/image/boot/stop.h"
#include "capture/image/boot/thread.h"

namespace backstay::image {

namespace {

constexpr uint64_t stack_bytes = 16 << 10;
constexpr uint32_t rseq_signature = 0x53053053;
constexpr uint64_t lock_bytes = 40;
constexpr uint64_t robust_place = 32;  // in a lock: the next one in the list
constexpr uint64_t near_bytes = 4096;
constexpr uint32_t once_done = 2;             // of pthread_once
constexpr uint32_t has_waiters = 0x80000000;  // FUTEX_WAITERS

NewIds ids;
const Tables* image = nullptr;
uint32_t ready = 0;
uint32_t filled = 0;  // memory is back: threads may make themselves what they were
uint32_t go = 0;

void register_rseq(const Thread& thread) {
  const Identity& identity = image->identity;
  if (identity.rseq_bytes == 0 || thread.fs == 0) return;
  struct Area {
    uint32_t cpu_start, cpu;
    uint64_t section;
    uint32_t flags;
  };
  const uint64_t at = thread.fs + static_cast<uint64_t>(identity.rseq_offset);
  *reinterpret_cast<Area*>(at) = Area{0, 0xffffffff, 0, 0};
  const uint32_t bytes = (identity.rseq_bytes + 31) / 32 * 32;
  system_call(__NR_rseq, static_cast<long>(at), bytes, 0, rseq_signature);
}

void become(const Thread& thread) {
  personality::take();
  system_call(__NR_arch_prctl, set_fs, static_cast<long>(thread.fs));
  system_call(__NR_arch_prctl, set_gs, static_cast<long>(thread.gs));
  system_call(__NR_set_tid_address, static_cast<long>(thread.clear_tid));
  system_call(__NR_set_robust_list, static_cast<long>(thread.robust_list),
              static_cast<long>(thread.robust_bytes));
  register_rseq(thread);
  system_call(__NR_prctl, PR_SET_NAME, address_of(thread.name));
  queued_signals::bring_back(*image, thread);
}

[[noreturn]] void return_to(uint64_t frame) {
  __asm__ volatile(
      "mov %0, %%rsp\n\t"
      "mov $15, %%eax\n\t"
      "syscall\n\t"
      "ud2"
      :
      : "r"(frame)
      : "memory");
  __builtin_unreachable();
}

void thread_main(void* argument) {
  wait_while(&filled, 0);
  const Thread thread = *static_cast<const Thread*>(argument);
  become(thread);
  rights::take(thread.tid);
  __atomic_fetch_add(&ready, 1, __ATOMIC_ACQ_REL);
  wake_all(&ready);
  wait_while(&go, 0);
  return_to(thread.frame);
}

// Contents of files are no memory.
bool may_hold_locks(const Area& area) {
  return (area.protection & PROT_WRITE) != 0 && !is_content(area);
}

// False also where the kernel cannot tell (before 5.14).
bool can_be_read(uint64_t page) {
  constexpr long populate_for_reading = 22;  // MADV_POPULATE_READ
  return system_call(__NR_madvise, static_cast<long>(page), page_bytes, populate_for_reading) == 0;
}

// A lock that begins in a run may end in the next page, which may be zeros and so in no run. Behind
// the end of a mapped file there is nothing.
LockRange lock_range(const Area& area, const Run& run) {
  const uint64_t end = end_of(run);
  const bool anonymous = area.kind == static_cast<uint32_t>(AreaKind::anonymous);
  const bool more = end < area.end && (anonymous || can_be_read(end));
  return LockRange{run.address, end, more ? end + page_bytes : end};
}

bool may_be_lock(const Tables& tables, uint64_t at) {
  const auto ends_before = [&](const Run& run) { return end_of(run) <= at; };
  const Run* run = find_first(tables.runs, ends_before);
  return at % 8 == 0 && run != tables.runs.end() && run->address <= at &&
         end_of(*run) - at >= lock_bytes && may_hold_locks(area_of(tables.areas, *run));
}

// Null: none is there.
const Area* area_at(const Tables& tables, uint64_t value) {
  const auto ends_before = [&](const Area& area) { return area.end <= value; };
  const Area* area = find_first(tables.areas, ends_before);
  return area != tables.areas.end() && area->start <= value ? area : nullptr;
}
bool is_address(const Tables& tables, uint64_t value) { return area_at(tables, value) != nullptr; }

// Whether this is a system call, or the instruction behind one. The vdso has no file, and is not
// back yet.
bool is_at_call(const Tables& tables, uint64_t instruction) {
  const Area* area = area_at(tables, instruction);
  if (area == nullptr || area->file == no_index) return false;
  constexpr uint16_t call = 0x050f;
  const auto* at = reinterpret_cast<const uint16_t*>(instruction);
  return at[0] == call || at[-1] == call;
}

bool is_of_libc(const char* path) {
  const char* name = last_part(path);
  return begins_with(name, "libc.so") || begins_with(name, "libc-") || begins_with(name, "librt");
}

// Before glibc 2.34 locks have a library of their own.
bool is_of_locks(const Tables& tables, const Area* area) {
  if (area == nullptr || area->file == no_index || (area->protection & PROT_READ) == 0)
    return false;
  const char* path = tables.text(tables.files[area->file].path);
  return is_of_libc(path) || begins_with(last_part(path), "libpthread");
}

// Whether it is libc's, and code near by reads the thread's id out of its block, as that of locks
// does and that of copies and of input and output does not.
bool reads_id_near(const Tables& tables, const Thread& thread, uint64_t instruction) {
  const Area* area = area_at(tables, instruction);
  if (!is_of_locks(tables, area)) return false;
  const auto place = static_cast<uint32_t>(thread.clear_tid - thread.fs);
  const auto* at = reinterpret_cast<const uint8_t*>(instruction - near_bytes);
  const auto* const end = reinterpret_cast<const uint8_t*>(instruction + near_bytes);
  const auto* const first = reinterpret_cast<const uint8_t*>(area->start + 8);
  const auto* const last = reinterpret_cast<const uint8_t*>(area->end - sizeof place);
  for (at = at < first ? first : at; at < end && at < last; ++at) {
    const bool is_in_block = at[-1] == 0x25 && (at[-4] == 0x64 || at[-5] == 0x64);
    if (is_in_block && memcmp(at, &place, sizeof place) == 0) return true;  // %fs:place
  }
  return false;
}

// libc notes each robust mutex that it takes or gives back, and how its list goes on from there.
bool is_noted(const Tables& tables, const Thread& thread, uint64_t lock) {
  if (!is_address(tables, thread.robust_list)) return false;
  const auto* const list = reinterpret_cast<const uint64_t*>(thread.robust_list);
  return (list[2] & ~uint64_t{1}) == lock + robust_place;
}

uint64_t (&registers_of(const Thread& thread))[registers_count] {
  return reinterpret_cast<Context*>(thread.frame)->registers;
}

// A thread that was stopped while it takes or gives back a lock has the address in a register.
template <typename Function>
bool any_lock_at_hand(const Tables& tables, const Thread& thread, Function function) {
  bool any = false;
  for (const uint64_t& one : registers_of(thread)) {
    if (may_be_lock(tables, one) && function(one)) any = true;
  }
  return any;
}

// libc has the thread's id in another register, or on the stack beside addresses whose halves may
// be the same number. It may be made ready as a lock's new value.
void renew_ids_at_hand(const Tables& tables, const Thread& thread) {
  auto& registers = registers_of(thread);
  const bool reads_id = reads_id_near(tables, thread, registers[reg_rip]);
  const bool is_call = is_at_call(tables, registers[reg_rip]);
  const bool has_id = any_lock_at_hand(tables, thread, [&](const uint64_t& at) {
    if (is_noted(tables, thread, at) || (reads_id && is_known_lock(at, ids))) return true;
    return &at == &registers[reg_rdi] && may_be_known_lock(at) && is_call;
  });
  if (!has_id) return;
  const uint32_t now = ids.renewed(thread.tid);
  for (int i = 0; i < reg_rsp; ++i) {  // behind these: the stack, the instruction, flags
    uint64_t& one = registers[i];
    if (is_call && (i == reg_rax || i == reg_rsi)) continue;  // which call it is
    if ((one & ~uint64_t{has_waiters}) == thread.tid) one = (one & has_waiters) | now;
  }
  auto* const stack = reinterpret_cast<uint64_t*>(registers[reg_rsp]);
  for (uint64_t* at = stack; at < stack + 16; ++at) {
    if (is_address(tables, *at)) continue;
    auto* const halves = reinterpret_cast<uint32_t*>(at);
    for (int i = 0; i < 2; ++i) {
      if ((halves[i] & ~has_waiters) == thread.tid) halves[i] = (halves[i] & has_waiters) | now;
    }
  }
}

void renew_locks_at_hand(const Tables& tables, const Thread& thread) {
  any_lock_at_hand(tables, thread, [&](uint64_t at) {
    renew_lock_under_way(at, thread.tid, ids);
    return true;
  });
}

// The thread in which glibc runs functions of timers (SIGEV_THREAD) blocks signal 32, which glibc
// hides from programs.
bool may_run_timers(const Thread& thread) { return (thread.mask >> 31 & 1) != 0; }

// glibc tells the kernel this thread's id with each new timer. It keeps the id beside the word of
// pthread_once by which the thread was started, in variables that have no names in the library.
void renew_timer_thread(const Tables& tables, uint32_t before) {
  uint32_t* found = nullptr;
  uint64_t end = 0;
  for (const Area& area : tables.areas) {
    const bool has_file = area.file != no_index;
    const bool libc =
        has_file ? is_of_libc(tables.text(tables.files[area.file].path)) : area.start == end;
    if (!libc || (area.protection & PROT_WRITE) == 0) continue;
    end = area.end;
    auto* const last = reinterpret_cast<uint32_t*>(end) - 1;
    for (auto* at = reinterpret_cast<uint32_t*>(area.start) + 1; at < last; ++at) {
      if (*at != before || (at[1] != once_done && at[-1] != once_done)) continue;
      if (found != nullptr) return;  // it may be neither
      found = at;
    }
  }
  if (found != nullptr) *found = ids.renewed(before);
}

const Thread* leader_of(const Tables& tables) {
  for (const Thread& thread : tables.threads) {
    if ((thread.flags & thread_leader) != 0) return &thread;
  }
  return nullptr;
}

}  // namespace

void start_threads(const Tables& tables, Trouble& trouble) {
  image = &tables;
  personality::learn(tables);
  ids.add(tables.identity.pid, static_cast<uint32_t>(sys_thread_id()));
  uint64_t stack = new_stacks_place;
  for (const Thread& thread : tables.threads) {
    if ((thread.flags & thread_leader) != 0) continue;
    NewThread start;
    start.flags = clone_memory | clone_place | clone_descriptors | clone_handlers | clone_thread |
                  clone_semaphores;
    if (sys_map(stack, stack_bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE) != static_cast<long>(stack)) {
      trouble << "no room for the stacks of new threads";
      return;
    }
    stack += stack_bytes;
    start.stack = reinterpret_cast<void*>(stack - 64);
    start.entry = thread_main;
    start.argument = const_cast<Thread*>(&thread);
    const long tid = start_thread(start);
    if (tid < 0) {
      trouble << "thread " << uint64_t{thread.tid} << " cannot be started (error " << -tid << ")";
      return;
    }
    ids.add(thread.tid, static_cast<uint32_t>(tid));
  }
}

uint32_t new_thread_id(uint32_t before) { return ids.holds(before) ? ids.renewed(before) : 0; }

void renew_thread_ids(const Tables& tables) {
  for (const Thread& thread : tables.threads) renew_ids_at_hand(tables, thread);
  for (const Thread& thread : tables.threads) {
    auto* word = reinterpret_cast<uint32_t*>(thread.clear_tid);
    if (word != nullptr && *word == thread.tid) *word = ids.renewed(thread.tid);
    renew_locks_at_hand(tables, thread);
    if (may_run_timers(thread)) renew_timer_thread(tables, thread.tid);
  }
  for (const Run& run : tables.runs) {
    const Area& area = area_of(tables.areas, run);
    if (may_hold_locks(area)) renew_locks(lock_range(area, run), ids);
  }
}

void go_on(const Tables& tables) {
  const Thread* leader = leader_of(tables);
  const uint64_t others = tables.threads.size() - (leader != nullptr ? 1 : 0);
  __atomic_store_n(&filled, 1, __ATOMIC_RELEASE);
  wake_all(&filled);
  if (leader != nullptr) become(*leader);
  for (;;) {
    const uint32_t seen = __atomic_load_n(&ready, __ATOMIC_ACQUIRE);
    if (seen == others) break;
    wait_while(&ready, seen);
  }
  queued_signals::bring_back(tables);
  const uint64_t frame = leader != nullptr ? leader->frame : 0;
  Text known;
  attributes::take_limits(tables, /*at_last=*/true, known);
  if (leader != nullptr) rights::take(leader->tid);
  system_call(__NR_membarrier, 16, 0, 0);  // REGISTER_PRIVATE_EXPEDITED: the program may have it
  rights::become_dumpable();
  open_control();
  __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
  wake_all(&go);
  if (frame == 0) {
    for (;;) system_call(__NR_exit, 0);  // the leader had ended: only the others go on
  }
  return_to(frame);
}

}  // namespace backstay::image
