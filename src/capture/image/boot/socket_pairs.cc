#include "capture/image/boot/socket_pairs.h"

#include <linux/poll.h>

#include "capture/image/boot/bring_back.h"
#include "capture/image/boot/descriptor_state.h"
#include "capture/image/boot/unix_diag.h"

namespace backstay::image {

namespace {

constexpr long family_unix = 1;
constexpr uint32_t stream = 1;
constexpr uint32_t datagrams = 2;
constexpr uint32_t shut_both = socket_shut_reading | socket_shut_writing;
constexpr uint32_t not_blocking = 04000;
constexpr long set_flags = 4;                     // F_SETFL
constexpr long bytes_waiting = 0x541b;            // FIONREAD
constexpr long socket_level = 1;                  // SOL_SOCKET
constexpr long type_option = 3;                   // SO_TYPE
constexpr long send_bytes = 7;                    // SO_SNDBUF
constexpr long receive_bytes = 8;                 // SO_RCVBUF
constexpr long credentials = 16;                  // SO_PASSCRED
constexpr long receive_least = 18;                // SO_RCVLOWAT
constexpr long receive_wait = 20;                 // SO_RCVTIMEO
constexpr long send_wait = 21;                    // SO_SNDTIMEO
constexpr long peek_offset = 42;                  // SO_PEEK_OFF
constexpr uint32_t peek = 0x2 | 0x40;             // MSG_PEEK, MSG_DONTWAIT
constexpr uint32_t without_wait = 0x40 | 0x4000;  // MSG_DONTWAIT, MSG_NOSIGNAL
constexpr int control_cut_off = 0x8;              // MSG_CTRUNC
// So much fits into any new socket: a restart has room for it.
constexpr uint64_t content_max = 128 << 10;

struct Piece {
  void* start;
  uint64_t bytes;
};
struct Message {  // msghdr
  void* name = nullptr;
  uint64_t name_bytes = 0;
  Piece* pieces = nullptr;
  uint64_t count = 0;
  void* control = nullptr;
  uint64_t control_bytes = 0;
  int flags = 0;
  int padding = 0;
};

Text& refuse(const Descriptor& one, Trouble& trouble) {
  return trouble << "descriptor " << uint64_t{one.number} << " is a socket ";
}

bool has_name(long fd) {
  char name[128];
  uint32_t bytes = sizeof name;
  return system_call(__NR_getsockname, fd, address_of(name), address_of(&bytes)) != 0 ||
         bytes > sizeof(uint16_t);
}

bool is_ours(const Tables& tables, uint64_t inode) {
  for (const Descriptor& one : tables.descriptors) {
    if (one.inode == inode && one.kind == static_cast<uint32_t>(DescriptorKind::socket))
      return true;
  }
  return false;
}

// Looks at what waits in the socket without taking it out.
void keep_content(Tables& tables, Descriptor& one, long fd, uint64_t bytes, Trouble& trouble) {
  const uint64_t at = tables.contents.size();
  if (bytes > content_max || bytes > tables.contents.room() - at) {
    refuse(one, trouble) << "in which more than 128 KiB wait: it cannot be saved now";
    return;
  }
  tables.contents.resize(at + bytes);
  Piece piece{&tables.contents[at], bytes};
  Message message;
  message.pieces = &piece;
  message.count = 1;
  const long got = system_call(__NR_recvmsg, fd, address_of(&message), static_cast<long>(peek));
  if ((message.flags & control_cut_off) != 0) {
    refuse(one, trouble) << "in which descriptors or credentials wait: it cannot be saved now";
  } else if (got != static_cast<long>(bytes)) {
    refuse(one, trouble) << "of which the content cannot be read";
  }
  one.contents_bytes += bytes;
}

template <typename Value>
void get_option(long fd, long name, Value& value) {
  uint32_t size = sizeof value;
  system_call(__NR_getsockopt, fd, socket_level, name, address_of(&value), address_of(&size));
}

void read_options(long fd, SocketState& state) {
  get_option(fd, type_option, state.type);
  get_option(fd, send_bytes, state.send_bytes);
  get_option(fd, receive_bytes, state.receive_bytes);
  get_option(fd, receive_least, state.receive_least);
  get_option(fd, credentials, state.credentials);
  get_option(fd, receive_wait, state.receive_wait);
  get_option(fd, send_wait, state.send_wait);
}

// Also if the message is empty.
bool has_message(long fd, const SocketState& state) {
  const bool ends = (state.shut & socket_shut_reading) != 0;
  char byte = 0;
  const long got =
      system_call(__NR_recvfrom, fd, address_of(&byte), 1, static_cast<long>(peek), 0, 0);
  return ends ? got > 0 : got >= 0;
}

// The kernel tells the error of a reset once, to the program: `poll` sees it and leaves it there.
bool is_reset(long fd) {
  pollfd look{static_cast<int>(fd), 0, 0};
  return system_call(__NR_poll, address_of(&look), 1, 0) == 1 && (look.revents & POLLERR) != 0;
}

// Both ends are the program's, or the other end is closed: that shuts this one for both directions.
bool is_pair(const Tables& tables, const Descriptor& one, long fd, SocketState& state) {
  if (!look_at_unix_socket(one.inode, state) || has_name(fd)) return false;
  if (state.peer != 0) return is_ours(tables, state.peer);
  return state.type != datagrams && (state.shut & shut_both) == shut_both;
}

void keep_borrowed(Tables& tables, Descriptor& one, long fd, Trouble& trouble) {
  SocketState state{};
  int waiting = 0;
  int offset = -1;
  read_options(fd, state);
  get_option(fd, peek_offset, offset);
  system_call(__NR_ioctl, fd, bytes_waiting, address_of(&waiting));
  if (!is_pair(tables, one, fd, state)) {
    refuse(one, trouble) << "whose other end the program does not have: it cannot be saved";
  } else if (state.type != stream && has_message(fd, state)) {
    refuse(one, trouble) << "in which messages wait: it cannot be saved now";
  } else if (offset >= 0) {
    refuse(one, trouble) << "with an offset for looking (SO_PEEK_OFF): it cannot be saved";
  } else {
    if (state.peer == 0 && is_reset(fd)) state.shut |= socket_reset;
    keep_state(tables, one, &state, sizeof state, trouble);
    if (trouble.empty() && waiting > 0) {
      keep_content(tables, one, fd, static_cast<uint64_t>(waiting), trouble);
    }
  }
}

// --- bringing back ---------------------------------------------------------------------------

struct Pair {
  uint64_t inodes[2] = {0, 0};
  long ends[2] = {-1, -1};
};
Pair pairs[descriptors_max];  // of some only one end is left
uint32_t pair_count = 0;

const Descriptor* with_inode(const Tables& tables, uint64_t inode) {
  for (const Descriptor& one : tables.descriptors) {
    if (one.inode == inode && one.kind == static_cast<uint32_t>(DescriptorKind::socket))
      return &one;
  }
  return nullptr;
}

// Writes into one end what waited in the other.
bool fill(const Tables& tables, const Descriptor& reader, long writer) {
  const uint64_t bytes = reader.contents_bytes - sizeof(SocketState);
  if (bytes == 0) return true;
  const void* from = &tables.contents[reader.contents + sizeof(SocketState)];
  return system_call(__NR_sendto, writer, address_of(from), static_cast<long>(bytes),
                     static_cast<long>(without_wait)) == static_cast<long>(bytes);
}

template <typename Value>
void set_option(long fd, long name, const Value& value) {
  system_call(__NR_setsockopt, fd, socket_level, name, address_of(&value), sizeof value);
}

// The kernel sets twice what it is given.
void set_size(long fd, long name, uint32_t value) {
  uint32_t now = 0;
  get_option(fd, name, now);
  if (now != value) set_option(fd, name, value / 2);
}

void settle(long end, const SocketState& state) {
  set_size(end, send_bytes, state.send_bytes);
  set_size(end, receive_bytes, state.receive_bytes);
  set_option(end, receive_least, state.receive_least);
  set_option(end, credentials, state.credentials);
  set_option(end, receive_wait, state.receive_wait);
  set_option(end, send_wait, state.send_wait);
  const uint32_t shut = state.shut & shut_both;
  if (shut != 0 && state.peer != 0) system_call(__NR_shutdown, end, static_cast<long>(shut) - 1);
}

// Finds the other end of `one`; if it is closed, `other` stays as it is. False: the tables are not
// those of a whole image.
bool other_of(const Tables& tables, const Descriptor& one, const SocketState& state,
              const Descriptor*& other, SocketState& other_state) {
  if (state.peer == 0) return true;
  other = with_inode(tables, state.peer);
  return other != nullptr && state_of(tables, *other, 0, other_state) &&
         other_state.peer == one.inode;
}

// Closes an end as the program had closed it: if bytes were unread, the end that is left has an
// error.
void close_end(long& end, long left, const SocketState& state) {
  const char byte = 0;
  if ((state.shut & socket_reset) != 0) {
    system_call(__NR_sendto, left, address_of(&byte), 1, static_cast<long>(without_wait));
  }
  sys_close(end);
  end = -1;
}

// The pair to which `one` belongs, with what waited in its ends; its first end makes it. Null: the
// tables are not those of a whole image, or a call has failed.
const Pair* pair_of(const Tables& tables, const Descriptor& one, const SocketState& state) {
  for (uint32_t i = 0; i < pair_count; ++i) {
    if (pairs[i].inodes[0] == one.inode || pairs[i].inodes[1] == one.inode) return &pairs[i];
  }
  const Descriptor* other = nullptr;
  SocketState other_state{};
  int ends[2] = {-1, -1};
  if (pair_count == sizeof pairs / sizeof pairs[0] ||
      !other_of(tables, one, state, other, other_state) ||
      system_call(__NR_socketpair, family_unix, state.type, 0, address_of(ends)) != 0) {
    return nullptr;
  }
  Pair& pair = pairs[pair_count++];
  pair.inodes[0] = one.inode;
  pair.inodes[1] = state.peer;
  for (int i = 0; i < 2; ++i) pair.ends[i] = lift_descriptor(ends[i]);
  if (!fill(tables, one, pair.ends[1])) return nullptr;
  if (other == nullptr) {
    close_end(pair.ends[1], pair.ends[0], state);
  } else {
    if (!fill(tables, *other, pair.ends[0])) return nullptr;
    settle(pair.ends[1], other_state);
  }
  settle(pair.ends[0], state);
  return &pair;
}

}  // namespace

void keep_socket(Tables& tables, Descriptor& one, Trouble& trouble) {
  const Borrowed borrowed(one);
  keep_borrowed(tables, one, borrowed.fd(), trouble);
}

long open_socket(const Tables& tables, const Descriptor& one) {
  SocketState state;
  if (!state_of(tables, one, 0, state)) return -1;
  const Pair* pair = pair_of(tables, one, state);
  if (pair == nullptr) return -1;
  const long fd = system_call(__NR_dup, pair->ends[pair->inodes[0] == one.inode ? 0 : 1]);
  if (fd >= 0 && (one.flags & not_blocking) != 0) {
    system_call(__NR_fcntl, fd, set_flags, static_cast<long>(one.flags));
  }
  return fd;
}

void end_sockets() {
  for (uint32_t i = 0; i < pair_count; ++i) {
    for (const long end : pairs[i].ends) {
      if (end >= 0) sys_close(end);
    }
  }
  pair_count = 0;
}

}  // namespace backstay::image
