#include "capture/companion/snapshot.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>

#include "base/failpoint.h"
#include "capture/companion/boot_line.h"
#include "capture/companion/boot_process.h"

namespace backstay::image {

Result<std::unique_ptr<Snapshot>> Snapshot::take(BootProcess& boot) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error(Code::again, errno_error("make a socket for a snapshot", errno).message());
  }
  std::unique_ptr<Snapshot> snapshot(new Snapshot);
  snapshot->line_.reset(ends[0]);
  Fd theirs(ends[1]);
  Request request{};
  request.kind = static_cast<std::uint32_t>(Ask::snapshot);
  BACKSTAY_ASSIGN(const Answer answer, boot.ask(request, theirs.get()));
  theirs.reset();  // its end is then seen
  snapshot->pid_ = static_cast<pid_t>(answer.process);
  failpoint("image.forked");
  const auto ready = receive_answer(snapshot->line_.get());
  if (!ready) return Error(Code::again, "the copy of the process was killed");
  BACKSTAY_TRY(allowed(*ready));
  return snapshot;
}

Snapshot::~Snapshot() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<Answer> Snapshot::ask(const Request& request) {
  send_request(line_.get(), request);
  const auto answer = receive_answer(line_.get());
  if (!answer) return Error(Code::io, "the snapshot of the program was killed");
  return allowed(*answer);
}

}  // namespace backstay::image
