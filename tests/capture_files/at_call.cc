// Runs a program and interferes at one of its system calls, counted from its first chdir on: what
// comes before is the loader's.
//
//     at_call kill NUMBER PROGRAM [ARGUMENT]...         killed when so many calls have been made
//     at_call fail NUMBER ERROR PROGRAM [ARGUMENT]...   the call is not made and returns this error
//
// Exit status: that of the program; 137 if
// it was killed; 125 if it made fewer calls than that and ended well; 126 if that call cannot fail.
// For x86-64.
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int fewer_calls = 125;

[[noreturn]] void become(char** command) {
  ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  execv(command[0], command);
  _exit(126);
}

// The call at whose begin the process stands fails with this error.
void make_fail(pid_t process, long error) {
  user_regs_struct registers = {};
  ptrace(PTRACE_GETREGS, process, nullptr, &registers);
  registers.orig_rax = static_cast<unsigned long long>(-1);
  ptrace(PTRACE_SETREGS, process, nullptr, &registers);
  ptrace(PTRACE_SYSCALL, process, nullptr, nullptr);
  int status = 0;
  waitpid(process, &status, 0);
  ptrace(PTRACE_GETREGS, process, nullptr, &registers);
  registers.rax = static_cast<unsigned long long>(-error);
  ptrace(PTRACE_SETREGS, process, nullptr, &registers);
}

// On to the next begin or end of a call. Returns the exit status, or -1 while the program runs.
int go_on(pid_t process) {
  int signal = 0;
  for (;;) {
    ptrace(PTRACE_SYSCALL, process, nullptr, signal);
    int status = 0;
    waitpid(process, &status, 0);
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
    if (WSTOPSIG(status) == (SIGTRAP | 0x80)) return -1;
    signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
  }
}

long call_of(pid_t process) {
  user_regs_struct registers = {};
  ptrace(PTRACE_GETREGS, process, nullptr, &registers);
  return static_cast<long>(registers.orig_rax);
}

bool can_fail(long call) {
  return call != SYS_getpid && call != SYS_rt_sigprocmask && call != SYS_brk;
}

}  // namespace

int main(int count, char** arguments) {
  const bool fails = count > 4 && std::strcmp(arguments[1], "fail") == 0;
  if (count < 4) return 2;
  const long number = std::atol(arguments[2]);
  const long error = fails ? std::atol(arguments[3]) : 0;
  const pid_t process = fork();
  if (process == 0) become(arguments + (fails ? 4 : 3));
  int status = 0;
  waitpid(process, &status, 0);
  ptrace(PTRACE_SETOPTIONS, process, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  bool begun = false;
  for (long seen = 0;;) {
    const int ended = go_on(process);
    if (ended >= 0) return ended == 0 && seen < 2 * number ? fewer_calls : ended;
    begun = begun || call_of(process) == SYS_chdir;
    if (!begun) continue;
    const bool reached = seen == 2 * number;  // each call stops twice, at its begin and its end
    if (fails && reached) {
      if (!can_fail(call_of(process))) return fewer_calls + 1;
      make_fail(process, error);
      ++seen;
    } else if (reached) {
      kill(process, SIGKILL);
    }
    ++seen;
  }
}
