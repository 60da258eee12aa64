// The records of an image (docs/format/image.md), as plain structs that mirror its byte tables.
// Used by the parser and by the static boot program, which has no library below it: so this header
// includes nothing but <stdint.h>, and no record has padding.
#pragma once

#include <stdint.h>

namespace backstay::image {

inline constexpr uint64_t page_bytes = 4096;
inline constexpr uint32_t format_whole = 1;
inline constexpr uint32_t format_kept = 2;  // it keeps pages of an older image
inline constexpr char image_magic[9] = "BKSTIMG1";
inline constexpr uint32_t signals = 64;
inline constexpr uint32_t no_index = 0xffffffff;
inline constexpr uint32_t features_count = 8;
inline constexpr uint32_t build_id_max = 32;

// Kinds of sections, each there once, in this order.
enum class Section : uint32_t {
  identity = 1,
  areas,
  runs,
  files,
  threads,
  handlers,
  timers,
  descriptors,
  contents,
  texts
};
inline constexpr uint32_t sections_count = 10;

struct Footer {
  char magic[8];
  uint32_t format;
  uint32_t sections;
  uint64_t table_offset;
  uint64_t table_bytes;
  uint64_t table_checksum;
  uint64_t page_bytes;
  uint64_t zeros;
  uint64_t checksum;
};
static_assert(sizeof(Footer) == 64);

struct SectionHeader {
  uint32_t kind;
  uint32_t record_bytes;
  uint64_t count;
};
static_assert(sizeof(SectionHeader) == 16);

struct Identity {
  uint64_t time_ns;
  uint64_t code_start, code_end, data_start, data_end;
  uint64_t brk_start, brk_end;
  uint64_t stack_start;
  uint64_t arg_start, arg_end, env_start, env_end;
  uint64_t auxv_start, auxv_bytes;
  uint64_t xfeatures;
  uint64_t pending;
  int64_t rseq_offset;
  uint32_t rseq_bytes;
  uint32_t xstate_bytes;
  uint32_t features[features_count];
  uint32_t pid, uid, gid, umask;
  uint32_t program, interpreter, cwd, kernel, host;
  uint32_t notes;  // 0: none
};
static_assert(sizeof(Identity) == 216);

enum class AreaKind : uint32_t {
  anonymous = 1,
  private_file,
  shared_file,
  shared_memory,
  vdso,
  vdso_data
};
inline constexpr uint32_t area_kinds = 6;
inline constexpr uint32_t protection_read = 1;
inline constexpr uint32_t protection_write = 2;
inline constexpr uint32_t protection_execute = 4;
inline constexpr uint32_t area_grows_down = 1;
inline constexpr uint32_t area_may_become_writable = 2;
inline constexpr uint32_t area_is_content = 4;
inline constexpr uint32_t area_flags = 7;  // all of them

struct Area {
  uint64_t start, end;
  uint64_t offset;
  uint64_t object;
  uint32_t kind;
  uint32_t protection;
  uint32_t flags;
  uint32_t file;
};
static_assert(sizeof(Area) == 48);

struct Run {
  uint64_t address;
  uint64_t pages;
  uint64_t offset;
  uint64_t version;
};
static_assert(sizeof(Run) == 32);

struct File {
  uint64_t device, inode, bytes, mtime_ns;
  uint64_t hash;
  uint8_t build_id[build_id_max];
  uint32_t build_id_bytes;
  uint32_t path;
};
static_assert(sizeof(File) == 80);

inline constexpr uint32_t registers_count = 18;
struct Thread {
  uint64_t frame;
  uint64_t fs, gs;
  uint64_t clear_tid;
  uint64_t robust_list, robust_bytes;
  uint64_t mask, pending;
  uint64_t registers[registers_count];
  uint32_t tid;
  uint32_t flags;
  char name[16];
};
static_assert(sizeof(Thread) == 232);
inline constexpr uint32_t thread_leader = 1;

struct Handler {
  uint64_t handler, flags, restorer, mask;
};
static_assert(sizeof(Handler) == 32);

enum class TimerKind : uint32_t { real = 1, virtual_time, profile, posix };
struct Timer {
  uint64_t interval_ns, value_ns;
  uint64_t notify_value;
  uint32_t kind;
  uint32_t id;
  int32_t clock;
  uint32_t notify;
  uint32_t signal;
  uint32_t tid;
};
static_assert(sizeof(Timer) == 48);

enum class DescriptorKind : uint32_t {
  file = 1,
  directory,
  device,
  pipe,
  inherited,
  counter,  // eventfd
  epoll,
  timer,       // timerfd
  signal_set,  // signalfd
  socket,      // one end of a pair; the program has both, or the other one is closed
};
inline constexpr uint32_t descriptor_kinds = 10;
inline constexpr uint32_t descriptor_closed_on_exec = 1;
inline constexpr uint32_t descriptor_is_own = 2;  // of 0 to 2: the program has put a file there
// It writes to the file that is standard output, or error, of the process that saves the program.
inline constexpr uint32_t descriptor_is_output = 4;
inline constexpr uint32_t descriptor_is_error = 8;
inline constexpr uint32_t descriptor_is_apart = 16;  // the program has opened that file once more
// Of a file without a name, marks also have its permissions, from this bit on.
inline constexpr uint32_t descriptor_mode_shift = 16;
struct Descriptor {
  uint64_t offset, bytes;
  uint64_t device, inode;
  uint64_t contents, contents_bytes;
  uint32_t number;
  uint32_t kind;
  uint32_t flags;
  uint32_t marks;
  uint32_t same_as;
  uint32_t path;
};
static_assert(sizeof(Descriptor) == 72);

// Which of the two it is: 1, 2; 0: none. Both may be one file, of which number 2 is standard error.
inline uint32_t given_output(const Descriptor& one) {
  const bool output = (one.marks & descriptor_is_output) != 0;
  const bool error = (one.marks & descriptor_is_error) != 0;
  if (error && (!output || one.number == 2)) return 2;
  return output ? 1 : 0;
}

// The contents of descriptors that are no files (docs/format/image.md, section 9).
struct Counter {
  uint64_t count;
  uint64_t semaphore;  // 1: a read takes one
};
static_assert(sizeof(Counter) == 16);

struct Watched {  // an open file that an epoll set watches
  uint64_t data;
  uint32_t number;  // under which it was added
  uint32_t events;
  uint32_t holder;  // a descriptor of that file; not `number` where that was closed since
  uint32_t zero;
};
static_assert(sizeof(Watched) == 24);

inline constexpr uint32_t timer_absolute = 1;  // as timerfd_settime takes them
struct TimerState {
  uint64_t left_s, left_ns;  // zeros: not set; of a timer at a moment of the wall clock: the moment
  uint64_t interval_s, interval_ns;
  uint64_t expired;  // how often, unread
  uint32_t clock;
  uint32_t flags;
};
static_assert(sizeof(TimerState) == 48);

inline constexpr uint32_t socket_shut_reading = 1;
inline constexpr uint32_t socket_shut_writing = 2;
inline constexpr uint32_t socket_reset = 4;  // the other end was closed with bytes unread
struct SocketState {                         // the bytes that wait in the socket follow
  uint64_t peer;                             // inode of the other end; 0: it is closed
  uint32_t type;                             // SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET
  uint32_t shut;
  uint32_t send_bytes, receive_bytes, receive_least, credentials;  // its options
  uint64_t receive_wait[2], send_wait[2];                          // s, us
};
static_assert(sizeof(SocketState) == 64);

}  // namespace backstay::image
