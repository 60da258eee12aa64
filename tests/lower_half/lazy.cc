// A thread that MPI starts in the middle of a call has the mask of the program's thread. It is none
// of the program's all the same: a signal that comes to it is handled by the program's thread, and
// no image has it. MPI does so seldom; here the lower half's own pthread_create is called.
// Usage: lazy [FILE]: it waits until there is such a file, with two of these threads.
#include <dirent.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/lower/table.h"

namespace {

using backstay::lower::table;

thread_local int mark = 0;
volatile int handled = 0;
volatile int foreign = 0;
pthread_t self;

void handle(int) {
  handled = handled + 1;
  if (mark != 4711 || pthread_equal(pthread_self(), self) == 0) foreign = foreign + 1;
}

// As our library makes a call.
template <typename Result, typename... Argument>
Result lower(void* function, Argument... argument) {
  uint64_t mine = 0;
  __asm__ volatile("mov %%fs:0, %0" : "=r"(mine));
  table().upper_fs = mine;
  __asm__ volatile("wrfsbase %0" : : "r"(table().fs) : "memory");
  const Result result = reinterpret_cast<Result (*)(Argument...)>(function)(argument...);
  __asm__ volatile("wrfsbase %0" : : "r"(mine) : "memory");
  return result;
}

void* find(const char* name) { return lower<void*>(reinterpret_cast<void*>(table().find), name); }

void start_thread_of_mpi() {
  static unsigned long id;
  void* const create = find("pthread_create");
  void* const sleep = find("pause");
  if (lower<int>(create, &id, static_cast<void*>(nullptr), sleep, static_cast<void*>(nullptr)) !=
      0) {
    abort();
  }
}

// How many threads sleep in pause().
int sleepers() {
  int count = 0;
  DIR* folder = opendir("/proc/self/task");
  while (const dirent* entry = readdir(folder)) {
    char name[512];
    int call = -1;
    snprintf(name, sizeof name, "/proc/self/task/%s/syscall", entry->d_name);
    FILE* file = entry->d_name[0] != '.' ? fopen(name, "r") : nullptr;
    if (file == nullptr) continue;
    count += fscanf(file, "%d", &call) == 1 && call == SYS_pause;
    fclose(file);
  }
  closedir(folder);
  return count;
}

// Only the thread of MPI can take the signal; its pause() ends then, and so does the thread.
bool is_handed_on() {
  handled = foreign = 0;
  const int before = sleepers();
  start_thread_of_mpi();
  while (sleepers() == before) usleep(1000);
  sigset_t set;
  sigset_t pending;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  kill(getpid(), SIGUSR1);
  while (sleepers() > before) usleep(1000);
  // The thread has left its pause() before it hands the signal on.
  while (sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 0 && handled == 0) {
    usleep(1000);
  }
  const bool waits = handled == 0;
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  return waits && handled == 1 && foreign == 0;
}

void wait_for(const char* file) {
  start_thread_of_mpi();
  start_thread_of_mpi();
  struct stat status;
  char name[256];
  snprintf(name, sizeof name, "%s.0", file);
  fclose(fopen(name, "w"));
  while (stat(file, &status) != 0) usleep(1000);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  mark = 4711;
  self = pthread_self();
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handle;
  sigaction(SIGUSR1, &action, nullptr);
  bool good = is_handed_on();
  if (argc > 1) {
    wait_for(argv[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    good = good && is_handed_on();
  }
  puts(good ? "right" : "wrong");
  MPI_Finalize();
  return good ? 0 : 1;
}
