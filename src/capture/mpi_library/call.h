// A call from the program to the real MPI: the FS base is switched there and back
// (docs/protocol/lower-half.md, "A call"). No thread-local storage may be used between: no errno,
// no stack protector. Built with the options that CMakeLists.txt gives.
#pragma once

#include "capture/lower/channel.h"
#include "capture/lower/table.h"
#include "capture/mpi_library/threads.h"

namespace backstay::mpi {

inline uint64_t own_fs() {
  uint64_t base = 0;
  __asm__ volatile("mov %%fs:0, %0" : "=r"(base));
  return base;
}
inline void set_fs(uint64_t base) { __asm__ volatile("wrfsbase %0" : : "r"(base) : "memory"); }

inline bool is_asked() {
  return __builtin_expect(__atomic_load_n(&lower::channel().attention, __ATOMIC_RELAXED) != 0, 0);
}

// --- the way in and out (attend.cc)
// A call is counted, and then `attention` is read. Whoever sets `attention` makes each thread pass
// a barrier and then reads `calls`: so it sees the call, or the call sees the word.

// In place of enter() where `attention` is set: does what it asks for, and holds the program while
// a cut says "stand". The call is counted when it returns.
[[gnu::cold]] void enter_asked();
// Tells the companion of a change during a cut.
[[gnu::cold]] void tell();

inline void enter() {
  volatile uint32_t& calls = caller_in().calls;
  calls = calls + 1;
  __asm__ volatile("" : : : "memory");
  if (is_asked()) enter_asked();
}
inline void leave() {
  __asm__ volatile("" : : : "memory");
  volatile uint32_t& calls = own_caller().calls;
  calls = calls - 1;
  if (is_asked()) tell();
  caller_out();
}

// The thread is in the real MPI while one of these lives.
class InCall {
 public:
  InCall() { enter(); }
  ~InCall() { leave(); }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;
};

// A function that runs with the FS base of the lower half; of a call that is counted.
template <typename Result, typename... Argument>
[[gnu::always_inline]] inline Result call_inside(void* function, Argument... argument) {
  lower::Table& table = lower::table();
  const uint64_t mine = own_fs();
  table.upper_fs = mine;
  set_fs(table.fs);
  const Result result = reinterpret_cast<Result (*)(Argument...)>(function)(argument...);
  set_fs(mine);
  return result;
}
// The same by the function's number.
template <typename Result = int, typename... Argument>
[[gnu::always_inline]] inline Result inside(uint32_t index, Argument... argument) {
  return call_inside<Result>(lower::table().function[index], argument...);
}

// A function of the real MPI with this FS base.
template <typename Result = int, typename... Argument>
[[gnu::always_inline]] inline Result call_with(uint64_t fs, uint32_t index, Argument... argument) {
  const uint64_t mine = own_fs();
  set_fs(fs);
  const Result result =
      reinterpret_cast<Result (*)(Argument...)>(lower::table().function[index])(argument...);
  set_fs(mine);
  return result;
}
// The same of a function that may wait for other ranks, or takes long: other threads of the program
// may be in MPI meanwhile. Its arguments are real handles, and memory that is this call's own.
template <typename Result = int, typename... Argument>
[[gnu::always_inline]] inline Result beside(uint32_t index, Argument... argument) {
  const uint64_t fs = __builtin_expect(may_unlock(), 0) ? borrow_fs() : 0;
  if (__builtin_expect(fs == 0, 1)) return inside<Result>(index, argument...);
  const Unlocked others;
  return call_with<Result>(fs, index, argument...);
}

template <typename Result, typename... Argument>
[[gnu::always_inline]] inline Result call(uint32_t index, Argument... argument) {
  const InCall in_call;
  return inside<Result>(index, argument...);
}

// A function of the real MPI, for code that has the lower half's FS base already.
template <typename... Argument>
[[gnu::always_inline]] inline int native(uint32_t index, Argument... argument) {
  return reinterpret_cast<int (*)(Argument...)>(lower::table().function[index])(argument...);
}

// What a function of the program runs in that the real MPI calls: its own FS base.
class InProgram {
 public:
  InProgram() : lower_(own_fs()) {
    const uint64_t* upper = lower::upper_fs_of(lower_);
    set_fs(upper != nullptr ? *upper : lower::table().upper_fs);
  }
  ~InProgram() { set_fs(lower_); }
  InProgram(const InProgram&) = delete;
  InProgram& operator=(const InProgram&) = delete;

 private:
  uint64_t lower_;
};

// A function of MPI that runs on the lower half's own thread. Its arguments are pointers and
// numbers, four at most: what a function does not take does not reach it.
// Of a call that is counted already.
inline int job(uint32_t index, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0) {
  struct Job {
    int (*function)(uint64_t, uint64_t, uint64_t, uint64_t);
    uint64_t given[4];
    int result;
  };
  lower::Table& table = lower::table();
  Job one{reinterpret_cast<decltype(Job::function)>(table.function[index]), {a, b, c, d}, 0};
  table.upper_fs = own_fs();
  table.do_job(
      [](void* context) {
        auto* of = static_cast<Job*>(context);
        const uint64_t* given = of->given;
        of->result = of->function(given[0], given[1], given[2], given[3]);
      },
      &one);
  return one.result;
}
inline int call_as_job(uint32_t index, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0,
                       uint64_t d = 0) {
  const InCall in_call;
  return job(index, a, b, c, d);
}

}  // namespace backstay::mpi
