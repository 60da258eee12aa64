// backstay-lower: opens the real MPI and lends it to the program in the same process.
//
// It is the lower half (docs/protocol/lower-half.md): an ordinary program with an interpreter and a
// libc of its own, which the boot program runs on a thread of its own. The thread fills in the
// table, says that it is ready, and then runs jobs. Functions of MPI are called by the program's
// threads with this thread's FS base, while this thread sleeps.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <utility>

#include "capture/lower/channel.h"
#include "capture/lower/table.h"

namespace backstay::lower {

namespace {

constexpr const char* names[] = {
#include <functions.inc>
};
constexpr uint64_t names_count = sizeof names / sizeof names[0];
static_assert(names_count <= functions_max);

void* library = nullptr;
bool begun = false;   // false: a program by itself, without the boot program's memory
uint32_t waking = 0;  // of a thread that is being started

// --- sleeping and waking, with any FS base: no libc ---------------------------------------------

long futex(uint32_t* word, long operation, uint32_t value) {
  register long timeout __asm__("r10") = 0;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(SYS_futex), "D"(word), "S"(operation), "d"(value), "r"(timeout)
                   : "rcx", "r11", "memory");
  return result;
}

void wait_while(uint32_t* word, uint32_t value) {
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value) futex(word, FUTEX_WAIT_PRIVATE, value);
}

void set(uint32_t* word, uint32_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
  futex(word, FUTEX_WAKE_PRIVATE, 0x7fffffff);
}

uint64_t own_fs() {
  uint64_t base = 0;
  __asm__ volatile("mov %%fs:0, %0" : "=r"(base));
  return base;
}

// --- jobs ---------------------------------------------------------------------------------------

enum : uint32_t { idle = 0, asked = 1, done = 2 };
struct Job {
  uint32_t phase = idle;
  void (*run)(void*) = nullptr;
  void* argument = nullptr;
};
Job job;

void do_job(void (*run)(void*), void* argument) {
  job.run = run;
  job.argument = argument;
  set(&job.phase, asked);
  wait_while(&job.phase, asked);
  job.phase = idle;
}

[[noreturn]] void serve() {
  for (;;) {
    while (__atomic_load_n(&job.phase, __ATOMIC_ACQUIRE) != asked) {
      wait_while(&job.phase, idle);
      wait_while(&job.phase, done);
    }
    job.run(job.argument);
    set(&job.phase, done);
  }
}

// UCX would change mmap and shmat in libc once more, to make the system calls by itself; its cache
// of registered memory is off then. PMIx of Open MPI 5 would map a file at the launcher's address,
// outside of the range (PMIX_MCA_gds). Handlers that print a stack when the program crashes would
// be handlers of the program, in code that an image does not hold.
constexpr const char* own_variables[][2] = {{"UCX_MEM_EVENTS", "n"},
                                            {"UCX_MEM_MMAP_HOOK_MODE", "none"},
                                            {"PMIX_MCA_gds", "^shmem,shmem2"},
                                            {"OMPI_MCA_opal_signal", ""},
                                            {"UCX_ERROR_SIGNALS", ""}};

// Not the program's to change.
bool is_kept(const char* name) {
  for (const auto& own : own_variables) {
    if (strcmp(name, own[0]) == 0) return true;
  }
  return strncmp(name, "LD_", 3) == 0 || strcmp(name, "GLIBC_TUNABLES") == 0;
}

void take_environment(void* environment) {
  for (char** one = static_cast<char**>(environment); *one != nullptr; ++one) {
    const char* value = strchr(*one, '=');
    if (value == nullptr) continue;
    char* name = strndup(*one, static_cast<size_t>(value - *one));
    const char* old = getenv(name);
    const bool same = old != nullptr && strcmp(old, value + 1) == 0;
    if (!same && !is_kept(name)) setenv(name, value + 1, 1);
    free(name);
  }
}

// --- threads that sleep, for the program's that are in MPI at once ------------------------------

// All signals are blocked, as in the thread that starts it.
void* sleep_for_ever(void* row) {
  Lent& lent = *static_cast<Lent*>(row);
  __atomic_store_n(&lent.fs, own_fs(), __ATOMIC_RELEASE);
  set(&waking, 1);
  for (;;) pause();
}

// It needs a stack for its start only: calls run on the program's.
void lend(void* row) {
  const auto at = static_cast<uint32_t>(reinterpret_cast<uint64_t>(row));
  if (at >= table().lent_count) __atomic_store_n(&table().lent_count, at + 1, __ATOMIC_RELEASE);
  waking = 0;
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 256 << 10);
  pthread_t thread;
  if (pthread_create(&thread, &small, sleep_for_ever, &table().lent[at]) == 0) {
    wait_while(&waking, 0);
    pthread_detach(thread);
  }
  pthread_attr_destroy(&small);
}

// --- leaving ------------------------------------------------------------------------------------

bool leaving = false;

// Registered before MPI is opened, so exit() calls it behind all that MPI has registered. The
// process ends by the program's own exit().
void stay() {
  if (!leaving) return;  // MPI itself ends the process
  set(&job.phase, done);
  for (;;) pause();
}

// MPICH 4.1 and later tell the launcher at exit that the rank has come to its end.
void leave(void*) {
  leaving = true;
  exit(0);
}

// --- the table ----------------------------------------------------------------------------------

// In place of a function that this MPI does not have.
template <size_t Index>
int missing() {
  dprintf(2, "backstay: the program calls %s, which %s does not have\n", names[Index],
          table().library);
  _exit(127);
}

template <size_t... Index>
void fill(std::index_sequence<Index...>) {
  void* const otherwise[] = {reinterpret_cast<void*>(&missing<Index>)...};
  uint64_t sum = sum_start;
  for (size_t i = 0; i < names_count; ++i) {
    sum = add_name(sum, names[i]);
    void* found = dlsym(library, names[i]);
    table().function[i] = found != nullptr ? found : otherwise[i];
  }
  table().functions_count = names_count;
  table().functions_sum = sum;
}

using Find = void* (*)(const char*);
Find find_by_adapter = nullptr;  // null: the MPI is the program's own

void* find(const char* symbol) {
  return find_by_adapter != nullptr ? find_by_adapter(symbol) : dlsym(library, symbol);
}

[[noreturn]] void fail(const char* what, const char* why) {
  snprintf(table().reason.text, sizeof table().reason.text, "%s%s", what, why);
  set(&table().state, static_cast<uint32_t>(State::failed));
  for (;;) pause();
}

// Opens and closes a file by libc, as MPI does. Null, or which of the two the boot program does not
// see: the lower half's descriptors would be taken for the program's.
const char* unseen() {
  const int one = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (one < 0) return nullptr;
  const bool is_noted = table().is_noted(one);
  close(one);
  return !is_noted ? "open" : table().is_noted(one) ? "close" : nullptr;
}

// Global, as a program that is linked with it has it: Open MPI's plug-ins look there.
void open_library(Table& shared) {
  library = dlopen(shared.library, RTLD_NOW | RTLD_GLOBAL);
  if (library != nullptr) return;
  static Reason why;
  snprintf(why.text, sizeof why.text, "%s", dlerror());
  if (shared.otherwise != nullptr) library = dlopen(shared.otherwise, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) fail("the real MPI cannot be opened: ", why.text);
  shared.library = shared.otherwise;
  shared.reason = why;
}

// The adapter opens the MPI of the launcher. Its own functions are for the table alone.
void open_adapter(const char* path, const char* mpi) {
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail("the adapter to another MPI cannot be opened: ", dlerror());
  const auto open =
      reinterpret_cast<const char* (*)(const char*)>(dlsym(library, "backstay_adapter_open"));
  find_by_adapter = reinterpret_cast<Find>(dlsym(library, "backstay_adapter_find"));
  if (open == nullptr || find_by_adapter == nullptr) fail("this is no adapter to an MPI: ", path);
  const char* why = open(mpi);
  if (why != nullptr) fail("the launcher's MPI cannot be used: ", why);
}

// For `backstay doctor`: prints the first line of the version, up to a comma. MPI tells it before
// MPI_Init.
int print_version(const char* file) {
  char text[8192];  // MPI_MAX_LIBRARY_VERSION_STRING of MPICH; Open MPI's is less
  int length = 0;
  void* mpi = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
  void* found = mpi != nullptr ? dlsym(mpi, "MPI_Get_library_version") : nullptr;
  if (found == nullptr) return 1;
  reinterpret_cast<int (*)(char*, int*)>(found)(text, &length);
  printf("%.*s", static_cast<int>(strcspn(text, ",\n")), text);
  fflush(stdout);
  _exit(0);  // without the end of an MPI that has not begun
}

void begin() {
  begun = true;
  Table& shared = table();
  if (shared.version != version)
    fail("", "backstay-lower is of another version than backstay-boot");
  const char* missed = shared.change_calls(reinterpret_cast<const void*>(&mmap));
  if (missed == nullptr) missed = unseen();
  if (missed != nullptr) fail("the C library is not known: this was not found in it: ", missed);
  for (const auto& own : own_variables) setenv(own[0], own[1], 1);
  atexit(stay);
  if (shared.adapter != nullptr) {
    open_adapter(shared.adapter, shared.launcher_library);
  } else {
    open_library(shared);
  }
  if (dlsym(library, "MPI_Init") == nullptr) fail("this is no MPI library: ", shared.library);
  fill(std::make_index_sequence<names_count>());
  shared.fs = own_fs();
  shared.do_job = do_job;
  shared.take_environment = take_environment;
  shared.find = find;
  shared.lend = lend;
  shared.process = getpid();
  shared.leave = leave;
  set(&shared.state, static_cast<uint32_t>(State::ready));
}

}  // namespace

// In place of libc's, for loops inside of MPI that wait for another rank (a collective call where
// ranks share cores). In a cut it sleeps: a rank that only gives way keeps the processor of a busy
// machine from those that it waits for.
extern "C" [[gnu::visibility("default")]] int sched_yield() {
  constexpr timespec pause{0, 50'000};
  const bool is_in_cut =
      begun && __atomic_load_n(&channel().attention, __ATOMIC_RELAXED) & attend_cut;
  long number = is_in_cut ? SYS_nanosleep : SYS_sched_yield;
  __asm__ volatile("syscall"
                   : "+a"(number)
                   : "D"(is_in_cut ? &pause : nullptr), "S"(0), "m"(pause)
                   : "rcx", "r11", "memory");
  return 0;
}

}  // namespace backstay::lower

// `backstay-lower --version-of FILE`: for `backstay doctor`.
int main(int count, char** words) {
  if (count == 3 && strcmp(words[1], "--version-of") == 0)
    return backstay::lower::print_version(words[2]);
  backstay::lower::begin();
  backstay::lower::serve();
}
