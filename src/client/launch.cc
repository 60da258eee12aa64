#include "client/launch.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string_view>

#include "base/program.h"

namespace backstay::client {

namespace {

constexpr const char* agent_program = "backstayd";

// The folder of the library (or, linked statically, of the program) that this code is in.
std::string own_folder() {
  Dl_info info{};
  link_map* object = nullptr;
  const auto* code = reinterpret_cast<const void*>(&is_launcher_variable);
  void** found = reinterpret_cast<void**>(&object);
  if (::dladdr1(code, &info, found, RTLD_DL_LINKMAP) == 0 || object == nullptr) return "";
  if (object->l_name[0] == '\0') return program_folder();  // so the loader lists the program
  std::error_code failed;
  const auto file = std::filesystem::canonical(object->l_name, failed);
  return failed ? "" : file.parent_path().string();
}

// The children run on stacks of their own, with the parent's memory and no sanitizer's view of it.
#define BACKSTAY_IN_CHILD __attribute__((no_sanitize("address", "thread", "undefined")))

constexpr std::size_t stack_bytes = 64 * 1024;

struct alignas(64) Stack {
  std::array<char, stack_bytes> bytes;
  char* top() { return bytes.data() + bytes.size(); }
};

// All that the children need, made before they exist: they may not allocate.
struct Plan {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  std::array<unsigned long, 1024> all_cpus;  // 65536 CPUs
  std::unique_ptr<Stack> outer;
  std::unique_ptr<Stack> inner;
  int said = -1;  // becomes stderr
  // Written by the children, read by the parent, which waits meanwhile.
  volatile int pid = 0;
  volatile int sys_errno = 0;
};

BACKSTAY_IN_CHILD void close_from(int first) {
  if (::close_range(static_cast<unsigned>(first), ~0U, 0) == 0) return;
  const long count = ::sysconf(_SC_OPEN_MAX);
  for (int fd = first; fd < (count < 0 ? 65536 : count); ++fd) ::close(fd);
}

BACKSTAY_IN_CHILD void replace_stdio(int said) {
  // If the program has closed its own stderr, the pipe may have its number, and CLOEXEC.
  const bool speaks = said == STDERR_FILENO ? ::fcntl(said, F_SETFD, 0) == 0
                                            : said >= 0 && ::dup2(said, STDERR_FILENO) >= 0;
  close_from(STDERR_FILENO + 1);
  const int null = ::open("/dev/null", O_RDWR);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  if (!speaks) ::dup2(null, STDERR_FILENO);
  if (null > STDERR_FILENO) ::close(null);
}

BACKSTAY_IN_CHILD void reset_signals() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) {
    ::sigaction(number, &standard, nullptr);  // refused for SIGKILL and SIGSTOP
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Shares the memory and makes the caller wait until the child executes a program or ends, as vfork
// does, but does not run on the caller's stack.
BACKSTAY_IN_CHILD pid_t start_child(int (*body)(void*), Stack& stack, Plan& plan) {
  return ::clone(body, stack.top(), CLONE_VM | CLONE_VFORK | SIGCHLD, &plan);
}

BACKSTAY_IN_CHILD int become_agent(void* argument) {
  auto& plan = *static_cast<Plan*>(argument);
  replace_stdio(plan.said);
  if (::chdir("/") != 0) ::_exit(127);
  ::umask(077);
  // The kernel cuts the mask down to what the control group allows.
  ::syscall(SYS_sched_setaffinity, 0, sizeof plan.all_cpus, plan.all_cpus.data());
#ifdef SYS_set_mempolicy
  ::syscall(SYS_set_mempolicy, 0 /* default */, nullptr, 0);
#endif
  reset_signals();
  ::execve(plan.arguments[0], plan.arguments.data(), plan.environment.data());
  plan.sys_errno = errno;
  ::_exit(127);
}

BACKSTAY_IN_CHILD int leave_the_program(void* argument) {
  auto& plan = *static_cast<Plan*>(argument);
  // No setsid(): where Linux shares processors among sessions (autogroups), an agent in a session
  // of its own would wait for seconds beside programs that compute, and all cuts with it.
  ::setpgid(0, 0);
  const pid_t pid = start_child(become_agent, *plan.inner, plan);
  plan.pid = pid;
  if (pid < 0) plan.sys_errno = errno;
  ::_exit(0);
}

Error cannot_start(const std::string& program, int sys_errno) {
  return {Code::agent_lost, errno_error("start the agent " + program, sys_errno).message(),
          sys_errno};
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

bool is_launcher_variable(const std::string& assignment) {
  static constexpr std::array<std::string_view, 16> prefixes = {
      "OMPI_", "ORTE_", "OPAL_",  "PMIX_",  "PMI_",  "PMI2_", "PRTE_",    "HYDRA_",
      "HYDI_", "MPI_",  "I_MPI_", "MPICH_", "MPIR_", "MPIO_", "MPIEXEC_", "LD_PRELOAD="};
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return assignment.starts_with(prefix); });
}

Result<std::string> find_agent_program(const std::string& configured) {
  if (!configured.empty()) {
    if (is_program(configured)) return configured;
    return Error(Code::agent_lost,
                 "agent.program is " + configured + ", which is no program that can be executed");
  }
  // Installed beside the library; with a multiarch library folder one level deeper; build tree.
  const std::string folder = own_folder();
  for (const char* step : {"/", "/../bin/", "/../../bin/", "/../src/bin/"}) {
    const std::string path = folder + step + agent_program;
    if (!folder.empty() && is_program(path)) return path;
  }
  if (const std::string path = find_program(agent_program); !path.empty()) return path;
  return Error(Code::agent_lost, "backstayd was found neither beside the library (" + folder +
                                     ") nor in PATH: set agent.program");
}

Result<LaunchedAgent> launch_agent(const std::string& program,
                                   const std::vector<std::string>& arguments) {
  std::vector<std::string> argv{program};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  std::vector<std::string> kept;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!is_launcher_variable(*variable)) kept.emplace_back(*variable);
  }
  LaunchedAgent agent;
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return cannot_start(program, errno);
  agent.said.reset(ends[0]);
  const Fd words(ends[1]);
  Plan plan;
  plan.said = words.get();
  plan.arguments = pointers(argv);
  plan.environment = pointers(kept);
  plan.all_cpus.fill(~0UL);
  plan.outer = std::make_unique<Stack>();
  plan.inner = std::make_unique<Stack>();

  // No handler of the program may run in a child that shares its memory.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t child = start_child(leave_the_program, *plan.outer, plan);
  const int failed = child < 0 ? errno : 0;
  if (child > 0) {
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);

  const int sys_errno = failed != 0 ? failed : plan.sys_errno;
  if (sys_errno != 0) return cannot_start(program, sys_errno);
  agent.pid = plan.pid;
  return agent;
}

}  // namespace backstay::client
