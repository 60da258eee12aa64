#include "bin/agent_start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "bin/agent_link.h"
#include "bin/python.h"
#include "bin/spawn.h"
#include "wire/socket.h"

namespace backstay::bin {
namespace {

constexpr auto look_again = std::chrono::milliseconds(10);

bool answers(const std::string& socket) { return wire::connect_to(socket).ok(); }

std::string text_of(int descriptor) {
  std::array<char, 2000> text{};
  const ssize_t got = ::pread(descriptor, text.data(), text.size(), 0);
  std::string said(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return said;
}

// In the child. What the agent says before its log is open goes to `said`.
[[noreturn]] void become_agent(const std::vector<char*>& argv, int said) {
  ::setsid();
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = ::open("/dev/null", O_RDWR);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  ::dup2(said, STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  if (::chdir("/") != 0) ::_exit(126);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

}  // namespace

std::string agent_program(const Config& config) {
  if (!config.agent.program.empty()) return find_program(config.agent.program);
  const std::string beside = find_program(program_folder() + "/backstayd");
  return beside.empty() ? find_program("backstayd") : beside;
}

Result<AgentStarted> ensure_agent(const Config& config, const std::string& config_file) {
  const std::string socket = agent_socket(config), program = agent_program(config);
  if (answers(socket)) {  // it listens; does it still work?
    BACKSTAY_ASSIGN(AgentLink agent, AgentLink::connect(config, config.agent.start_timeout_s));
    BACKSTAY_TRY(agent.status());
    return AgentStarted{};
  }
  if (program.empty())
    return Error(Code::not_found,
                 "backstayd was not found beside backstay nor in PATH; set agent.program");
  std::error_code ignored;
  std::vector<std::string> words{program, "--socket", socket};
  if (!config_file.empty())
    words.insert(words.end(),
                 {"--config", std::filesystem::absolute(config_file, ignored).string()});
  const auto argv = argument_vector(words);
  const Fd said(::memfd_create("backstayd-stderr", MFD_CLOEXEC));
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("start the agent", errno);
  if (pid == 0) become_agent(argv, said.get());
  const Clock& clock = system_clock();
  const auto deadline =
      clock.monotonic_ns() + static_cast<std::uint64_t>(config.agent.start_timeout_s * 1e9);
  while (!answers(socket)) {
    int status = 0;
    // Two tools may start one at the same time: the loser ends, the winner answers.
    if (::waitpid(pid, &status, WNOHANG) == pid && !answers(socket))
      return Error(Code::agent_lost,
                   fmt::format("the agent {} ended at once: {}", program, text_of(said.get())));
    if (clock.monotonic_ns() > deadline)
      return Error(Code::timeout, fmt::format("the agent does not answer at {} after {} s", socket,
                                              config.agent.start_timeout_s));
    std::this_thread::sleep_for(look_again);
  }
  return AgentStarted{true, pid};
}

}  // namespace backstay::bin
