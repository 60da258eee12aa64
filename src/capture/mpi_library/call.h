// A call from the program to the real MPI: the FS base is switched there and back
// (docs/protocol/lower-half.md, "A call"). No thread-local storage may be used between: no errno,
// no stack protector. Built with the options that CMakeLists.txt gives.
#pragma once

#include "capture/lower/channel.h"
#include "capture/lower/table.h"

namespace backstay::mpi {

inline uint64_t own_fs() {
  uint64_t base = 0;
  __asm__ volatile("mov %%fs:0, %0" : "=r"(base));
  return base;
}
inline void set_fs(uint64_t base) { __asm__ volatile("wrfsbase %0" : : "r"(base) : "memory"); }

// The slow path of a call: does what the channel's `attention` asks for. attend.cc
[[gnu::cold]] void attend();
inline bool is_asked() {
  return __builtin_expect(__atomic_load_n(&lower::channel().attention, __ATOMIC_RELAXED) != 0, 0);
}
inline bool is_asked_to_renew() {
  return (__atomic_load_n(&lower::channel().attention, __ATOMIC_RELAXED) & lower::attend_renew) !=
         0;
}

// First in each function of MPI, before a real handle is read: while one of these lives no image is
// taken, so what was read stays right. The outermost one heeds the channel: in a callback of the
// real MPI nothing can be renewed.
class InCall {
 public:
  InCall() {
    const uint32_t outside = calls();
    calls() = outside + 1;
    if (!is_asked() || outside != 0) return;
    do {
      attend();
    } while (is_asked_to_renew());
  }
  ~InCall() { calls() = calls() - 1; }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

 private:
  static volatile uint32_t& calls() { return lower::channel().calls; }
};

// A function that runs with the FS base of the lower half. The caller has an InCall.
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

// What a function of the program runs in that the real MPI calls: its own FS base.
class InProgram {
 public:
  InProgram() { set_fs(lower::table().upper_fs); }
  ~InProgram() { set_fs(lower::table().fs); }
  InProgram(const InProgram&) = delete;
  InProgram& operator=(const InProgram&) = delete;
};

// A function of MPI that runs on the lower half's own thread. Its arguments are pointers and
// numbers, four at most: what a function does not take does not reach it.
inline int call_as_job(uint32_t index, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0,
                       uint64_t d = 0) {
  struct Job {
    int (*function)(uint64_t, uint64_t, uint64_t, uint64_t);
    uint64_t given[4];
    int result;
  };
  lower::Table& table = lower::table();
  Job job{reinterpret_cast<decltype(Job::function)>(table.function[index]), {a, b, c, d}, 0};
  table.upper_fs = own_fs();
  table.do_job(
      [](void* context) {
        auto* one = static_cast<Job*>(context);
        const uint64_t* given = one->given;
        one->result = one->function(given[0], given[1], given[2], given[3]);
      },
      &job);
  return job.result;
}

}  // namespace backstay::mpi
