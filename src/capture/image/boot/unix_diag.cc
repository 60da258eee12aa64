#include "capture/image/boot/unix_diag.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <string.h>

namespace backstay::image {

namespace {

constexpr long raw_close_on_exec = 3 | 02000000;  // SOCK_RAW, SOCK_CLOEXEC
constexpr uint8_t family_unix = 1;
constexpr long family_netlink = 16;
constexpr uint8_t connected = 1;  // TCP_ESTABLISHED, of all families

struct Question {
  nlmsghdr header;
  unix_diag_req body;
};

long ask(long link, uint64_t inode, void* answer, uint64_t room) {
  Question question{};
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.body.sdiag_family = family_unix;
  question.body.udiag_states = ~0U;
  question.body.udiag_ino = static_cast<uint32_t>(inode);
  question.body.udiag_show = UDIAG_SHOW_PEER;
  question.body.udiag_cookie[0] = question.body.udiag_cookie[1] = ~0U;
  const long sent = system_call(__NR_sendto, link, address_of(&question), sizeof question);
  return sent < 0 ? sent
                  : system_call(__NR_recvfrom, link, address_of(answer), static_cast<long>(room));
}

bool read_answer(const char* bytes, uint64_t size, SocketState& state) {
  nlmsghdr header;
  if (size < sizeof header + sizeof(unix_diag_msg)) return false;
  memcpy(&header, bytes, sizeof header);
  unix_diag_msg body;
  memcpy(&body, bytes + sizeof header, sizeof body);
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY || body.udiag_state != connected) return false;
  uint64_t at = sizeof header + sizeof(unix_diag_msg);
  rtattr one;
  while (at + sizeof one <= size) {
    memcpy(&one, bytes + at, sizeof one);
    if (one.rta_len < sizeof one || at + one.rta_len > size) return false;
    const char* value = bytes + at + sizeof one;
    uint32_t peer = 0;
    if (one.rta_type == UNIX_DIAG_PEER) {
      memcpy(&peer, value, sizeof peer);
      state.peer = peer;
    }
    if (one.rta_type == UNIX_DIAG_SHUTDOWN) state.shut = static_cast<uint8_t>(*value);
    at += (one.rta_len + 3U) & ~3U;
  }
  return true;
}

}  // namespace

bool look_at_unix_socket(uint64_t inode, SocketState& state) {
  alignas(nlmsghdr) char answer[1024];
  const long link = system_call(__NR_socket, family_netlink, raw_close_on_exec, NETLINK_SOCK_DIAG);
  if (link < 0) return false;
  const long size = ask(link, inode, answer, sizeof answer);
  sys_close(link);
  return size > 0 && read_answer(answer, static_cast<uint64_t>(size), state);
}

}  // namespace backstay::image
