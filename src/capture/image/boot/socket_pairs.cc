#include "capture/image/boot/socket_pairs.h"

#include "capture/image/boot/bring_back.h"
#include "capture/image/boot/files.h"
#include "capture/image/boot/unix_diag.h"

namespace backstay::image {

namespace {

constexpr long family_unix = 1;
constexpr uint32_t stream = 1;
constexpr uint32_t not_blocking = 04000;
constexpr long set_flags = 4;                     // F_SETFL
constexpr long bytes_waiting = 0x541b;            // FIONREAD
constexpr long get_type[] = {1, 3};               // SOL_SOCKET, SO_TYPE
constexpr uint32_t peek = 0x2 | 0x40;             // MSG_PEEK, MSG_DONTWAIT
constexpr uint32_t without_wait = 0x40 | 0x4000;  // MSG_DONTWAIT, MSG_NOSIGNAL
constexpr int control_cut_off = 0x8;              // MSG_CTRUNC
// What fits into a new socket for sure, so that a restart finds room for it.
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

bool keep_state(Tables& tables, Descriptor& one, const SocketState& state) {
  const uint64_t at = tables.contents.size();
  if (sizeof state > tables.contents.room() - at) return false;
  tables.contents.resize(at + sizeof state);
  memcpy(&tables.contents[at], &state, sizeof state);
  one.contents = at;
  one.contents_bytes = sizeof state;
  return true;
}

void keep_borrowed(Tables& tables, Descriptor& one, long fd, Trouble& trouble) {
  SocketState state{};
  uint32_t size = sizeof state.type;
  int waiting = 0;
  system_call(__NR_getsockopt, fd, get_type[0], get_type[1], address_of(&state.type),
              address_of(&size));
  system_call(__NR_ioctl, fd, bytes_waiting, address_of(&waiting));
  if (!look_at_unix_socket(one.inode, state) || !is_ours(tables, state.peer) || has_name(fd)) {
    refuse(one, trouble) << "whose other end the program does not have: it cannot be saved";
  } else if (waiting > 0 && state.type != stream) {
    refuse(one, trouble) << "in which messages wait: it cannot be saved now";
  } else if (!keep_state(tables, one, state)) {
    refuse(one, trouble) << "for whose state the image has no room";
  } else if (waiting > 0) {
    keep_content(tables, one, fd, static_cast<uint64_t>(waiting), trouble);
  }
}

// --- bringing back ---------------------------------------------------------------------------

struct Pair {
  uint64_t inodes[2] = {0, 0};
  long ends[2] = {-1, -1};
};
Pair pairs[256];
uint32_t pair_count = 0;

const Descriptor* with_inode(const Tables& tables, uint64_t inode) {
  for (const Descriptor& one : tables.descriptors) {
    if (one.inode == inode && one.kind == static_cast<uint32_t>(DescriptorKind::socket))
      return &one;
  }
  return nullptr;
}

SocketState state_of(const Tables& tables, const Descriptor& one) {
  SocketState state{};
  if (one.contents_bytes >= sizeof state) {
    memcpy(&state, &tables.contents[one.contents], sizeof state);
  }
  return state;
}

// Writes into one end what waited in the other.
bool fill(const Tables& tables, const Descriptor& reader, long writer) {
  const uint64_t bytes = reader.contents_bytes - sizeof(SocketState);
  if (bytes == 0) return true;
  const void* from = &tables.contents[reader.contents + sizeof(SocketState)];
  return system_call(__NR_sendto, writer, address_of(from), static_cast<long>(bytes),
                     static_cast<long>(without_wait)) == static_cast<long>(bytes);
}

void shut(long end, const SocketState& state) {
  if (state.shut != 0) system_call(__NR_shutdown, end, static_cast<long>(state.shut) - 1);
}

// Both ends, with what lay in them. Null: the tables are not what an image has, or no room.
const Pair* pair_of(const Tables& tables, const Descriptor& one) {
  for (uint32_t i = 0; i < pair_count; ++i) {
    if (pairs[i].inodes[0] == one.inode || pairs[i].inodes[1] == one.inode) return &pairs[i];
  }
  const SocketState state = state_of(tables, one);
  const Descriptor* other = with_inode(tables, state.peer);
  if (pair_count == sizeof pairs / sizeof pairs[0] || other == nullptr) return nullptr;
  const SocketState other_state = state_of(tables, *other);
  int ends[2] = {-1, -1};
  if (other_state.peer != one.inode ||
      system_call(__NR_socketpair, family_unix, state.type, 0, address_of(ends)) != 0) {
    return nullptr;
  }
  Pair& pair = pairs[pair_count++];
  pair.inodes[0] = one.inode;
  pair.inodes[1] = other->inode;
  for (int i = 0; i < 2; ++i) pair.ends[i] = lift_descriptor(ends[i]);
  if (!fill(tables, one, pair.ends[1]) || !fill(tables, *other, pair.ends[0])) return nullptr;
  shut(pair.ends[0], state);
  shut(pair.ends[1], other_state);
  return &pair;
}

}  // namespace

void keep_socket(Tables& tables, Descriptor& one, Trouble& trouble) {
  const long fd = borrow_descriptor(one.number);
  keep_borrowed(tables, one, fd, trouble);
  if (fd >= 0) sys_close(fd);
}

long open_socket(const Tables& tables, const Descriptor& one) {
  if (one.contents_bytes < sizeof(SocketState)) return -1;
  const Pair* pair = pair_of(tables, one);
  if (pair == nullptr) return -1;
  const long fd = system_call(__NR_dup, pair->ends[pair->inodes[0] == one.inode ? 0 : 1]);
  if (fd >= 0 && (one.flags & not_blocking) != 0) {
    system_call(__NR_fcntl, fd, set_flags, static_cast<long>(one.flags));
  }
  return fd;
}

void end_sockets() {
  for (uint32_t i = 0; i < pair_count; ++i) {
    for (const long end : pairs[i].ends) sys_close(end);
  }
  pair_count = 0;
}

}  // namespace backstay::image
