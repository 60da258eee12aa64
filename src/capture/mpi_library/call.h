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

// The thread is in the real MPI while one of these lives.
class InCall {
 public:
  InCall() { calls() = calls() + 1; }
  ~InCall() { calls() = calls() - 1; }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

 private:
  static volatile uint32_t& calls() { return lower::channel().calls; }
};

// Any function of the lower half.
template <typename Result, typename... Argument>
[[gnu::always_inline]] inline Result call_address(void* function, Argument... argument) {
  const InCall in_call;
  lower::Table& table = lower::table();
  const uint64_t mine = own_fs();
  table.upper_fs = mine;
  set_fs(table.fs);
  const Result result = reinterpret_cast<Result (*)(Argument...)>(function)(argument...);
  set_fs(mine);
  return result;
}

template <typename Result, typename... Argument>
[[gnu::always_inline]] inline Result call(uint32_t index, Argument... argument) {
  if (is_asked()) attend();
  return call_address<Result>(lower::table().function[index], argument...);
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
  if (is_asked()) attend();
  const InCall in_call;
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
