#include "capture/companion/boot_line.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace backstay::image {

void send_request(int line, const Request& request, int descriptor) {
  iovec piece{const_cast<Request*>(&request), sizeof request};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> rights{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = rights.data();
    message.msg_controllen = rights.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  while (::sendmsg(line, &message, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

std::optional<Answer> receive_answer(int line) {
  Answer answer{};
  ssize_t got = -1;
  do {
    got = ::recv(line, &answer, sizeof answer, 0);
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got != sizeof answer) return std::nullopt;
  answer.why[why_max - 1] = '\0';
  return answer;
}

Result<Answer> allowed(const Answer& answer) {
  switch (static_cast<Refused>(answer.refused)) {
    case Refused::no: return answer;
    case Refused::now: return Error(Code::unsupported, answer.why);
    case Refused::again: return Error(Code::again, answer.why);
    case Refused::child: return Error(Code::busy, answer.why);
    case Refused::image: return Error(Code::not_found, answer.why);
    default: return Error(Code::mismatch, answer.why);
  }
}

}  // namespace backstay::image
