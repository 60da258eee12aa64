#include "capture/companion/boot_process.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include "base/program.h"
#include "capture/companion/boot_line.h"

namespace backstay::image {

namespace {

// Beside this program; installed: the same folder; in a build tree: where its target is.
Result<std::string> find_boot() {
  const std::string folder = program_folder();
  for (const char* step : {"/backstay-boot", "/../image/boot/backstay-boot",
                           "/../src/capture/image/boot/backstay-boot"}) {
    if (is_program(folder + step)) return folder + step;
  }
  return Error(Code::not_found, "backstay-boot is missing beside backstay-companion, in " + folder +
                                    ": Backstay is not installed as a whole");
}

// In the child.
[[noreturn]] void become(const std::vector<char*>& argv, int socket, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it has ended in between
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::fcntl(socket, F_SETFD, 0);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

// Why the program at this path runs without the boot program.
const char* why_not_booted(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) return "which may not be read";
  if ((status.st_mode & (S_ISUID | S_ISGID)) != 0) return "which is set-user-id or set-group-id";
  if (::fgetxattr(file.get(), "security.capability", nullptr, 0) > 0) {
    return "which has capabilities of its own (setcap)";
  }
  Elf64_Ehdr header{};
  const bool whole = ::pread(file.get(), &header, sizeof header, 0) == sizeof header;
  if (!whole || header.e_machine != EM_X86_64) return "which is no program of x86-64";
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    const auto at = static_cast<off_t>(header.e_phoff + i * sizeof segment);
    if (::pread(file.get(), &segment, sizeof segment, at) != sizeof segment) break;
    if (segment.p_type == PT_INTERP) {
      return "by a system call that Backstay does not see: name that program on the command line";
    }
  }
  return "which is linked statically";
}

// Why no answer comes any more. A process that ends has no program any more either.
Error gone(pid_t pid, const std::string& boot) {
  std::error_code ends;
  const auto program = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), ends);
  std::error_code other;
  if (ends || std::filesystem::equivalent(program, boot, other)) {
    return {Code::rank_lost, "the program has ended"};
  }
  return {Code::unsupported,
          fmt::format("it has replaced itself by {} (exec), {}", program.string(),
                      why_not_booted(fmt::format("/proc/{}/exe", pid)))};
}

}  // namespace

Result<std::unique_ptr<BootProcess>> BootProcess::start(const std::vector<std::string>& words,
                                                        const LifeOptions& life) {
  BACKSTAY_ASSIGN(std::string boot, find_boot());
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return errno_error("make a socket for the boot program", errno);
  }
  std::unique_ptr<BootProcess> process(new BootProcess);
  process->socket_.reset(ends[0]);
  const Fd theirs(ends[1]);
  std::vector<std::string> all{boot, "--companion", std::to_string(theirs.get())};
  if (!life.mpi.empty()) all.insert(all.end(), {"--mpi", life.mpi});
  if (!life.launcher_mpi.empty()) all.insert(all.end(), {"--launcher-mpi", life.launcher_mpi});
  if (!life.channel.empty()) all.insert(all.end(), {"--channel", life.channel});
  if (!life.contents.empty()) all.insert(all.end(), {"--contents", life.contents});
  all.emplace_back(words.empty() ? "--bring-back" : "--");
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  process->program_ = boot;
  process->pid_ = ::fork();
  if (process->pid_ < 0) return errno_error("start the boot program", errno);
  if (process->pid_ == 0) become(argv, theirs.get(), parent);
  ::setpgid(process->pid_, process->pid_);  // in both, so that signal() finds the group at once
  return process;
}

BootProcess::~BootProcess() {
  if (pid_ <= 0 || end_) return;
  ::kill(pid_, SIGKILL);
  wait();
}

Status BootProcess::lend(const client::Connection::Pool& pool) {
  struct stat facts {};
  if (::fstat(pool.descriptor, &facts) != 0) return errno_error("look at the pool", errno);
  // A program that has replaced itself since then has lost it.
  Request request{};
  request.kind = static_cast<std::uint32_t>(Ask::resume);
  if (facts.st_ino == pool_inode_ && pool.bytes.data() == pool_.bytes.data()) {
    BACKSTAY_ASSIGN(const Answer answer, ask(request));
    if (answer.bytes == pool.bytes.size()) return {};
  }
  request.kind = static_cast<std::uint32_t>(Ask::pool);
  request.bytes = pool.bytes.size();
  request.at = static_cast<std::uint64_t>(pool.home.data() - pool.bytes.data());
  request.object = pool.home.size();
  BACKSTAY_TRY(ask(request, pool.descriptor));
  pool_ = pool;
  pool_inode_ = facts.st_ino;
  return {};
}

std::uint64_t BootProcess::in_pool(std::span<const std::byte> memory) const {
  return static_cast<std::uint64_t>(memory.data() - pool_.bytes.data());
}

Result<Answer> BootProcess::ask(const Request& request, int descriptor) {
  begin(request, descriptor);
  return answer();
}

// A boot program that has refused to start has left its reason: answer() reads it behind the errors
// that its end causes here.
void BootProcess::begin(const Request& request, int descriptor) {
  send_request(socket_.get(), request, descriptor);
}

Result<Answer> BootProcess::answer() {
  const std::optional<Answer> answer = receive_answer(socket_.get());
  return answer ? allowed(*answer) : gone(pid_, program_);
}

void BootProcess::signal(int number) const {
  if (pid_ > 0 && !end_) ::kill(-pid_, number);
}

namespace {

int code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

std::optional<int> BootProcess::reap() {
  int status = 0;
  if (!end_ && ::waitpid(pid_, &status, WNOHANG) == pid_) end_ = code_of(status);
  return end_;
}

int BootProcess::wait() {
  int status = 0;
  while (!end_) {
    const pid_t pid = ::waitpid(pid_, &status, 0);
    if (pid == pid_) end_ = code_of(status);
    if (pid < 0 && errno != EINTR) end_ = 127;
  }
  return *end_;
}

}  // namespace backstay::image
