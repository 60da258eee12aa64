#include "capture/files/ask.h"

#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "capture/files/raw.h"

namespace backstay::files {
namespace {

std::atomic<long> quiet_until;  // no file is handed over before: a collector was silent

// Returns an error number.
int send(int to, const Question& question, const int* descriptors) {
  const std::size_t bytes = handed_with(question.ask) * sizeof(int);
  struct iovec part = {const_cast<Question*>(&question), sizeof(question)};
  alignas(struct cmsghdr) char room[CMSG_SPACE(handed_max * sizeof(int))] = {};
  struct msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (bytes > 0) {
    message.msg_control = room;
    message.msg_controllen = CMSG_SPACE(bytes);
    struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(header), descriptors, bytes);
  }
  long sent = -EINTR;
  while (sent == -EINTR) sent = raw::call(SYS_sendmsg, to, &message, MSG_NOSIGNAL);
  return sent < 0 ? static_cast<int>(-sent) : 0;
}

// Sends the counts along. A collector that ends at once loses its part of them.
int send_counted(int to, Question question, const int* descriptors) {
  question.counts = take_counts();
  const int error = send(to, question, descriptors);
  if (error != 0) give_back(question.counts);
  return error;
}

Answered read_answers(Asker& asker, int from) {
  Answer answer;
  for (;;) {
    const int ready = raw::wait_on(from, POLLIN, silence_ms_max);
    if (ready == -EINTR) continue;
    if (ready == 0) return {Way::silent};
    if (ready < 0) return {Way::gone};
    const long got = raw::call(SYS_recvfrom, from, &answer, sizeof(answer), 0, nullptr, nullptr);
    if (got == -EINTR || got == -EAGAIN) continue;
    if (got < static_cast<long>(answer_bytes_min) || answer.bytes > words_max) return {Way::gone};
    if (answer.said == Said::done) return {Way::answered, answer.error, answer.version};
    if (!asker.hear(asker, answer)) return {Way::left};
  }
}

void end_listener(int fd) {
  struct {
    pid_t pid;
    uid_t user;
    gid_t group;
  } peer = {};
  socklen_t bytes = sizeof(peer);
  if (raw::call(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return;
  if (peer.pid > 1) raw::call(SYS_kill, peer.pid, SIGKILL);
}

bool ends_silent(const Asker& asker, const Question& question) {
  return asker.ends_silent && handed_with(question.ask) == 0;
}

Question question_of(Ask what, const Finished& finished) {
  Question question;
  question.ask = what;
  question.opened_bytes = finished.opened.st_size;
  question.opened_s = finished.opened.st_mtim.tv_sec;
  question.opened_ns = finished.opened.st_mtim.tv_nsec;
  return question;
}

Answered noted(const Answered& answered) {
  constexpr long quiet_s = 60;
  if (answered.way == Way::silent) quiet_until.store(raw::now_s() + quiet_s);
  return answered;
}

}  // namespace

Answered ask(Asker& asker, const Question& question, const int* descriptors) {
  const int fd = asker.connect(asker);
  if (fd == -ETIMEDOUT) return {Way::silent, ETIMEDOUT};
  if (fd < 0) return {Way::unasked};
  const int error = send_counted(fd, question, descriptors);
  const Answered answered = error != 0 ? Answered{Way::gone, error} : read_answers(asker, fd);
  if (answered.way == Way::silent && ends_silent(asker, question)) end_listener(fd);
  raw::close(fd);
  return answered;
}

Answered ask_in_turn(Asker& asker, const Question& question, const int* descriptors) {
  constexpr int attempts = 3;
  for (int attempt = 1;; ++attempt) {
    const Answered answered = ask(asker, question, descriptors);
    const bool ended =
        answered.way == Way::silent && answered.error == 0 && ends_silent(asker, question);
    if ((answered.way != Way::gone && !ended) || attempt == attempts) return answered;
  }
}

bool may_take(int memory, std::uint64_t bytes_min) {
  struct stat stat = {};
  return raw::now_s() >= quiet_until.load() && raw::fstat(memory, &stat) == 0 &&
         static_cast<std::uint64_t>(stat.st_size) >= bytes_min;
}

Answered keep(Asker& asker, const Finished& finished, Until until, std::uint64_t synced) {
  Question question = question_of(Ask::keep, finished);
  question.until = until;
  question.version = synced;
  const int descriptors[] = {finished.memory, finished.target};
  return noted(ask(asker, question, descriptors));
}

Answered settle_taken(Asker& asker, const Finished& finished) {
  struct stat placed = {};
  if (raw::fstat(finished.target, &placed) != 0) return {Way::answered};
  return settle(asker, placed.st_dev, placed.st_ino);
}

Answered sync(Asker& asker, const Finished& finished, int hold) {
  const int descriptors[] = {finished.memory, finished.target, hold};
  return noted(ask_in_turn(asker, question_of(Ask::sync, finished), descriptors));
}

Answered let_go(Asker& asker, std::uint64_t synced) {
  Question question;
  question.ask = Ask::let_go;
  question.version = synced;
  return ask_in_turn(asker, question);
}

Answered settle(Asker& asker, std::uint64_t device, std::uint64_t inode, bool reads) {
  Question question;
  question.ask = Ask::settle;
  question.device = device;
  question.inode = inode;
  question.reads = reads ? 1 : 0;
  return ask_in_turn(asker, question);
}

int make_hold(const char* folder) {
  const int fd = raw::openat(AT_FDCWD, folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
  if (fd < 0) return fd;
  const long locked = raw::call(SYS_flock, fd, LOCK_EX | LOCK_NB);
  if (locked == 0) return fd;
  raw::close(fd);
  return static_cast<int>(locked);
}

}  // namespace backstay::files
