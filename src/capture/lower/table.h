// The halves of an MPI process share one table at a fixed address, at the start of the lower half's
// range (docs/protocol/lower-half.md).
//
// The boot program maps it and writes `Start`, backstay-lower fills in the functions, and our MPI
// library reads it in each call. Everything is set before the state says ready, but for `upper_fs`
// and the job, which belong to the thread of the program that is in a call, and what is lent.
#pragma once

#include <stdint.h>

namespace backstay::lower {

inline constexpr uint64_t range_start = 0x4b5e00000000;  // the end of the boot program's own part
inline constexpr uint64_t range_end = range_start + (1ULL << 40);
inline constexpr uint64_t table_bytes = 1 << 20;
inline constexpr uint64_t first_free = range_start + table_bytes;

inline constexpr uint32_t functions_max = 4096;
inline constexpr uint32_t version = 8;
// Threads of the program that are in MPI at once; one more waits.
inline constexpr uint32_t threads_max = 4096;

// Door 5 of the boot program (docs/format/image.md, "Doors"): starts the lower half and waits for
// it.
inline constexpr uint64_t doors_page = 0x4a5efffff000;
inline constexpr uint64_t start_door = doors_page + 5 * 32;
// `library`: soname of the real MPI. Returns null where all is well, else why not: a sentence that
// is valid until the next call.
using StartDoor = const char* (*)(const char* library, char** environment);

enum class State : uint32_t { starting = 0, ready = 1, failed = 2 };

// Why a start has failed; also where the program has to say it itself.
struct Reason {
  char text[1024];
};

// A sleeping thread of the lower half. One thread of the program has its FS base in a call for
// which other threads need not wait (docs/protocol/lower-half.md, "Several threads").
struct Lent {
  uint64_t fs;        // 0: it has not been started
  uint64_t upper_fs;  // of the thread that has it: callbacks set it
};

struct Table {
  uint32_t version;
  uint32_t state;  // State; a futex
  // From the boot program, for backstay-lower.
  const char* library;  // path or soname of the real MPI; with an adapter the soname, for messages
  // Path of a library to be opened where that one cannot be; null: none. `library` is this one
  // then, and `reason` says why.
  const char* otherwise;
  // Path of an adapter that gives this library's ABI and calls another MPI; null: none is needed.
  const char* adapter;
  // Path of the MPI that the adapter calls; null: the default search finds it.
  const char* launcher_library;
  // Behind a restart: the lower half has the environment of this process's launcher, and the
  // program's is that of an earlier one, which has ended.
  bool is_behind_restart;
  // Changes the system calls of the library in which this address lies. Null, or which one is
  // missing.
  const char* (*change_calls)(const void* inside);
  // Whether the boot program knows this descriptor as one of the lower half's.
  bool (*is_noted)(int descriptor);
  Reason reason;
  // From backstay-lower.
  uint64_t fs;        // FS base of its thread, which a call borrows
  uint64_t upper_fs;  // of the thread that is in a call: callbacks set it
  uint64_t functions_count;
  uint64_t functions_sum;  // of their names: both sides were built from the same list
  // Runs `run(argument)` on its thread and returns when that has ended. Called with any FS base.
  void (*do_job)(void (*run)(void*), void* argument);
  // Takes over variables of the program's environment. A job.
  void (*take_environment)(void* environment);
  void* (*find)(
      const char* symbol);  // any symbol of the real library; null: none. Borrowed FS base
  // Starts the thread of `lent[row]`. A job; where it fails, `fs` stays 0.
  void (*lend)(void* row);
  int64_t process;  // whose thread runs the jobs: no child of it
  // Calls the functions that libraries of MPI want to be called at exit. A job, and the last one.
  void (*leave)(void*);
  uint32_t lent_count;  // rows that were ever used
  Lent lent[threads_max];
  void* function[functions_max];
};
static_assert(sizeof(Table) <= table_bytes);

inline Table& table() { return *reinterpret_cast<Table*>(range_start); }

// The place of the own FS base of the program's thread that has this one of the lower half. Null:
// no thread of the program has it.
inline uint64_t* upper_fs_of(uint64_t fs) {
  Table& all = table();
  if (fs == all.fs) return &all.upper_fs;
  const uint32_t count = __atomic_load_n(&all.lent_count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count; ++i) {
    if (all.lent[i].fs == fs) return &all.lent[i].upper_fs;
  }
  return nullptr;
}

// FNV-1a over names and a separator each.
inline constexpr uint64_t sum_start = 0xcbf29ce484222325;
inline constexpr uint64_t add_name(uint64_t sum, const char* name) {
  for (;; ++name) {
    sum = (sum ^ static_cast<uint8_t>(*name)) * 0x100000001b3;
    if (*name == 0) return sum;
  }
}

}  // namespace backstay::lower
