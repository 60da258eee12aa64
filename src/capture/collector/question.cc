#include "capture/collector/question.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace backstay::files {

Result<Asked> receive_question(int from) {
  Asked asked;
  iovec part{&asked.question, sizeof asked.question};
  alignas(cmsghdr) char room[CMSG_SPACE(handed_max * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  ssize_t got = -1;
  do {
    got = ::recvmsg(from, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  for (cmsghdr* header = got < 0 ? nullptr : CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::vector<int> numbers(count);
    std::memcpy(numbers.data(), CMSG_DATA(header), count * sizeof(int));
    for (const int number : numbers) asked.descriptors.emplace_back(number);
  }
  if (got <= 0) return Error(Code::agent_lost, "the process that asked is gone");
  const bool whole = got == static_cast<ssize_t>(sizeof asked.question) &&
                     asked.question.magic == collect_magic &&
                     (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  if (!whole || std::ssize(asked.descriptors) != handed_with(asked.question.ask)) {
    return Error(Code::protocol, "a question of another release");
  }
  return asked;
}

namespace {

bool send_answer(int to, const Answer& answer) {
  const std::size_t bytes = answer_bytes_min + answer.bytes;
  for (;;) {
    const ssize_t sent = ::send(to, &answer, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return true;
    if (errno != EINTR) return errno == EAGAIN;
  }
}

}  // namespace

bool send_done(int to, int error, std::uint64_t version) {
  Answer answer;
  answer.said = Said::done;
  answer.error = error;
  answer.version = version;
  return send_answer(to, answer);
}

bool send_answer(int to, Said said, const std::string& words) {
  Answer answer;
  answer.said = said;
  answer.bytes = static_cast<std::uint32_t>(std::min(words.size(), words_max));
  std::memcpy(answer.words, words.data(), answer.bytes);
  return send_answer(to, answer);
}

bool has_left(int socket) {
  pollfd look{socket, POLLRDHUP, 0};
  return ::poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace backstay::files
