// Calls that make another process, make this process another program, or end it. A memory file
// belongs to one process: before a second one can share its descriptors the file is made real.
#include <pthread.h>
#include <spawn.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "capture/files/capture.h"
#include "capture/files/counts.h"
#include "capture/files/export.h"
#include "capture/files/pool.h"
#include "capture/files/raw.h"
#include "capture/files/vfork.h"

namespace backstay::files {
namespace {

bool parent_has_files;  // guarded by the lock

void before_fork() {
  const bool mine = is_owner();
  lock_before_fork();
  parent_has_files = mine;
  if (mine) make_all_real();
}

void after_fork_in_child() {
  const bool mine = parent_has_files;
  renew_lock_in_child();
  forget_counts();
  if (mine) forget_all();
}

void before_other_process() {
  if (!is_anything_captured()) return;
  Lock lock;
  make_all_real();
}

// The new process may be of a program that takes no library.
void before_other_program() {
  before_other_process();
  settle_all();
}

void before_quick_exit() {
  bring_all_home();
  settle_at_end();
}

// Streams are written out after us, at the very end of exit; so it is done here as well.
void before_exit() {
  if (is_anything_captured()) std::fflush(nullptr);
  before_quick_exit();
}

__attribute__((constructor)) void start() {
  start_capture();
  start_pool();
  ::pthread_atfork(&before_fork, &unlock_after_fork, &after_fork_in_child);
  ::at_quick_exit(&before_quick_exit);
}

__attribute__((destructor)) void stop() { before_exit(); }

}  // namespace

void before_vfork() { before_other_process(); }

#define STARTS(result, name, parameters, values) \
  EXPORT(result, name, parameters) {             \
    before_other_program();                      \
    return NEXT(name) values;                    \
  }
STARTS(int, posix_spawn,
       (pid_t * child, const char* path, const posix_spawn_file_actions_t* actions,
        const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment),
       (child, path, actions, attributes, arguments, environment))
STARTS(int, posix_spawnp,
       (pid_t * child, const char* path, const posix_spawn_file_actions_t* actions,
        const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment),
       (child, path, actions, attributes, arguments, environment))
STARTS(int, system, (const char* command), (command))
STARTS(FILE*, popen, (const char* command, const char* mode), (command, mode))

EXPORT(int, clone,
       (int (*body)(void*), void* stack, int flags, void* argument, void* a, void* b, void* c)) {
  constexpr int shares_descriptors = 0x400;  // CLONE_FILES
  if ((flags & shares_descriptors) == 0) before_other_process();
  return NEXT(clone)(body, stack, flags, argument, a, b, c);
}

int next_clone(int (*body)(void*), void* stack, int flags, void* argument) {
  return NEXT(clone)(body, stack, flags, argument, nullptr, nullptr, nullptr);
}

// What comes in this process's place may be a program that takes no library, and reads what this
// one, or its parent, has written.
static void before_exec() {
  bring_all_home();
  settle_all();
  note_at_end();
}

EXPORT(void, _exit, (int status)) {
  before_quick_exit();
  NEXT(_exit)(status);
}

EXPORT(void, _Exit, (int status)) {
  before_quick_exit();
  NEXT(_Exit)(status);
}

#define BECOMES(name, parameters, values) \
  EXPORT(int, name, parameters) {         \
    before_exec();                        \
    return NEXT(name) values;             \
  }
BECOMES(execve, (const char* path, char* const* arguments, char* const* environment),
        (path, arguments, environment))
BECOMES(execv, (const char* path, char* const* arguments), (path, arguments))
BECOMES(execvp, (const char* path, char* const* arguments), (path, arguments))
BECOMES(execvpe, (const char* path, char* const* arguments, char* const* environment),
        (path, arguments, environment))
BECOMES(fexecve, (int fd, char* const* arguments, char* const* environment),
        (fd, arguments, environment))
BECOMES(execveat,
        (int folder, const char* path, char* const* arguments, char* const* environment, int flags),
        (folder, path, arguments, environment, flags))

namespace {

// The arguments of execl and its kin as an array on the stack of `then`.
template <typename Then>
int with_array(const char* first, va_list list, Then then) {
  va_list counted;
  va_copy(counted, list);
  size_t count = 1;
  while (va_arg(counted, char*) != nullptr) ++count;
  va_end(counted);
  auto* arguments = static_cast<char**>(__builtin_alloca((count + 1) * sizeof(char*)));
  arguments[0] = const_cast<char*>(first);
  for (size_t number = 1; number <= count; ++number) arguments[number] = va_arg(list, char*);
  return then(arguments, list);
}

}  // namespace

#define OF_A_LIST(name, call)                                                                \
  EXPORT(int, name, (const char* path, const char* first, ...)) {                            \
    va_list list;                                                                            \
    va_start(list, first);                                                                   \
    const int result = with_array(                                                           \
        first, list, [&](char** arguments, [[maybe_unused]] va_list rest) { return call; }); \
    va_end(list);                                                                            \
    return result;                                                                           \
  }
OF_A_LIST(execl, backstay_execv(path, arguments))
OF_A_LIST(execlp, backstay_execvp(path, arguments))
OF_A_LIST(execle, backstay_execve(path, arguments, va_arg(rest, char**)))

}  // namespace backstay::files
