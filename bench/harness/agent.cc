#include "bench/harness/agent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/harness/samples.h"
#include "bench/harness/shared.h"
#include "wire/socket.h"

namespace backstay::bench {

namespace {

constexpr int wait_ms = 120'000;

std::string temporary_folder() {
  std::string name = "/tmp/backstay-bench-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) die("mkdtemp failed");
  return name;
}

Result<bool> ask_if_touched(const std::string& socket_path) {
  BACKSTAY_ASSIGN(const Fd socket, wire::connect_to(socket_path));
  BACKSTAY_TRY(wire::send(socket.get(), wire::Admin{}));
  BACKSTAY_TRY(wire::send(socket.get(), wire::Status{}));
  BACKSTAY_ASSIGN(const wire::Received received, wire::receive(socket.get()));
  const auto* answer = std::get_if<wire::Answer>(&received.message);
  if (answer == nullptr) return Error(Code::protocol, "the agent did not answer");
  const auto status = nlohmann::json::parse(answer->json, nullptr, false);
  return status.is_object() && status.at("pool").at("touched").get<bool>();
}

}  // namespace

Agent::Agent(AgentOptions options)
    : options_(std::move(options)), short_folder_(temporary_folder()) {
  if (access(options_.program.c_str(), X_OK) != 0) die("no agent at " + options_.program);
  std::filesystem::remove_all(options_.folder);
  std::filesystem::create_directories(storage_dir());
  std::ofstream file(config_path());
  file << "[job]\nname = \"" << options_.job << "\"\n"
       << "[storage]\ndir = \"" << storage_dir() << "\"\nkeep = " << options_.keep << "\n"
       << "[checkpoint]\npolicy = \"request\"\n"
       << "[pool]\nsize_mib = " << options_.pool_mib << "\n"
       << "[agent]\nsocket = \"" << socket_path() << "\"\nprogram = \"" << options_.program
       << "\"\n"
       << "log_file = \"" << options_.folder << "/agent.log\"\n"
       << "idle_exit_s = 600\nstart_timeout_s = 120\n";
  if (!file.flush()) die("cannot write " + config_path());
}

std::string Agent::socket_path() const { return short_folder_ + "/agent.sock"; }

void Agent::start() {
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) die("fork failed");
  if (pid_ == 0) {
    signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    // A reader of the benchmark's output must not wait for the agent.
    const std::string config = config_path();
    const std::string output = options_.folder + "/agent.out";
    const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0 || dup2(file, STDOUT_FILENO) < 0 || dup2(file, STDERR_FILENO) < 0) _exit(1);
    execl(options_.program.c_str(), options_.program.c_str(), "--config", config.c_str(), nullptr);
    _exit(1);
  }
  // It listens first and touches its pool in the background: a benchmark waits for both.
  for (int tries = 0; tries < wait_ms / 10; ++tries) {
    const auto touched = ask_if_touched(socket_path());
    if (touched.ok() && *touched) return;
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) die("the agent ended; see " + options_.folder);
    poll(nullptr, 0, 10);
  }
  die("the agent does not listen, or has not touched its pool; see " + options_.folder);
}

void Agent::stop() {
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  pollfd ended{handle, POLLIN, 0};
  const bool in_time = handle < 0 || poll(&ended, 1, wait_ms) == 1;
  if (handle >= 0) close(handle);
  if (!in_time) kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

Agent::~Agent() {
  stop();
  std::error_code ignored;
  std::filesystem::remove_all(short_folder_, ignored);
  std::filesystem::remove_all(storage_dir(), ignored);
}

std::uint64_t resident_bytes(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

double cpu_s(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  // The second field is the name in parentheses and may hold anything; 12 and 13 after it are
  // the ticks in user and system mode, of all threads.
  std::istringstream fields(line.substr(std::min(line.size(), line.rfind(')') + 1)));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

ResidentPeak::ResidentPeak(pid_t watched)
    : shared_(make_shared_object<Shared>()), watcher_(fork()) {
  if (watcher_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (!shared_->stop) {
    shared_->peak = std::max(shared_->peak.load(), resident_bytes(watched));
    poll(nullptr, 0, 20);
  }
  _exit(0);
}

ResidentPeak::~ResidentPeak() {
  shared_->stop = true;
  waitpid(watcher_, nullptr, 0);
}

}  // namespace backstay::bench
