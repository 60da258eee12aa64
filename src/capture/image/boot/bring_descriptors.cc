#include "capture/image/boot/bring_back.h"
#include "capture/image/boot/epoll_sets.h"
#include "capture/image/boot/events.h"
#include "capture/image/boot/files.h"
#include "capture/image/boot/lower_half.h"
#include "capture/image/boot/nameless.h"
#include "capture/image/boot/outputs.h"
#include "capture/image/boot/rights.h"
#include "capture/image/boot/socket_pairs.h"
#include "capture/image/boot/watch.h"

namespace backstay::image {

namespace {

constexpr uint32_t access_mode = 3;
constexpr uint64_t standard = 3;  // 0, 1, 2: given by what starts the program
// O_TMPFILE, which is of folders alone.
constexpr uint32_t without_name = 020200000;
constexpr long duplicate_above = 0;  // F_DUPFD
constexpr long set_flags = 4;        // F_SETFL

struct Pipe {
  uint64_t inode = 0;
  int ends[2] = {-1, -1};
};
Pipe pipes[descriptors_max / 2];
uint32_t pipe_count = 0;
long above = 0;  // the first number that no descriptor of the image has

constexpr long open_files = 7;  // RLIMIT_NOFILE
struct Limit {
  uint64_t soft = 0, hard = 0;
};
Limit limit;

const Descriptor* reader_of(const Tables& tables, uint64_t inode) {
  for (const Descriptor& one : tables.descriptors) {
    if (one.inode == inode && one.kind == static_cast<uint32_t>(DescriptorKind::pipe) &&
        (one.flags & access_mode) == 0) {
      return &one;
    }
  }
  return nullptr;
}

// Both ends, with what lay in it.
Pipe* pipe_of(const Tables& tables, uint64_t inode) {
  for (uint32_t i = 0; i < pipe_count; ++i) {
    if (pipes[i].inode == inode) return &pipes[i];
  }
  if (pipe_count == sizeof pipes / sizeof pipes[0]) return nullptr;
  Pipe& pipe = pipes[pipe_count];
  int ends[2] = {-1, -1};
  const Descriptor* reader = reader_of(tables, inode);
  if (reader == nullptr || system_call(__NR_pipe2, address_of(ends), 0) != 0) return nullptr;
  rights::give(ends[0]);
  pipe.inode = inode;
  pipe.ends[0] = static_cast<int>(lift_descriptor(ends[0]));
  pipe.ends[1] = static_cast<int>(lift_descriptor(ends[1]));
  system_call(__NR_fcntl, pipe.ends[1], 1031 /* F_SETPIPE_SZ */, static_cast<long>(reader->bytes));
  if (reader->contents_bytes > 0) {
    sys_write(pipe.ends[1], &tables.contents[reader->contents], reader->contents_bytes);
  }
  ++pipe_count;
  return &pipe;
}

long open_pipe(const Tables& tables, const Descriptor& one) {
  const Pipe* pipe = pipe_of(tables, one.inode);
  if (pipe == nullptr) return -1;
  const long fd = system_call(__NR_dup, pipe->ends[one.flags & access_mode]);
  system_call(__NR_fcntl, fd, set_flags, static_cast<long>(one.flags));
  return fd;
}

// A removed file comes back as one without a name.
long open_removed(const Tables& tables, const Descriptor& one) {
  const long fd = nameless::file(tables, nameless::number_of(one.device, one.inode));
  if (fd < 0) return fd;
  Text link;
  link << "/proc/self/fd/" << fd;
  return sys_open(link.c_str(), static_cast<int>(one.flags & ~only_at_first & ~without_name));
}

// The new process may have a descriptor of its own under this number: only the same pipe or
// terminal counts.
bool is_inherited_again(const Descriptor& one) {
  FileStatus status;
  return descriptor_status(one.number, status) && status.device == one.device &&
         status.inode == one.inode;
}

long open_one(const Tables& tables, const Descriptor& one) {
  const char* path = tables.text(one.path);
  switch (static_cast<DescriptorKind>(one.kind)) {
    case DescriptorKind::pipe: return open_pipe(tables, one);
    case DescriptorKind::socket: return open_socket(tables, one);
    case DescriptorKind::counter:
    case DescriptorKind::epoll:
    case DescriptorKind::timer:
    case DescriptorKind::signal_set: return open_event(tables, one);
    case DescriptorKind::inherited:
      return is_inherited_again(one) ? one.number : sys_open("/dev/null", O_RDWR);
    case DescriptorKind::file:
      if (nameless::is_one(tables, one)) return open_removed(tables, one);
      break;
    default: break;
  }
  const long fd = sys_open(path, static_cast<int>(one.flags & ~only_at_first));
  if (fd >= 0 && one.kind == static_cast<uint32_t>(DescriptorKind::file)) cut_back(one, fd);
  return fd;
}

bool closes_on_exec(const Descriptor& one) { return (one.marks & descriptor_closed_on_exec) != 0; }

void place(const Descriptor& one, long fd) {
  const long flags = closes_on_exec(one) ? O_CLOEXEC : 0;
  if (fd != one.number) {
    system_call(__NR_dup3, fd, one.number, flags);
    sys_close(fd);
  } else {
    system_call(__NR_fcntl, fd, F_SETFD, closes_on_exec(one) ? 1 : 0);
  }
}

// What was given stays as it was given, whatever it shared in the old process: on a terminal
// standard input, output and error are one open file.
bool is_given(const Descriptor& one) { return outputs::given(one) >= 0; }

// A copy of all three is one of standard output: that is what programs copy.
uint32_t same_as(const Tables& tables, const Descriptor& one) {
  if (one.same_as != 0) return one.same_as;
  for (const Descriptor& other : tables.descriptors) {
    if (other.number == 1 && other.same_as == 0 && is_given(other)) return 1;
  }
  return 0;
}

void open_descriptor(const Tables& tables, const Descriptor& one, Trouble& trouble) {
  if (one.same_as != one.number && !is_given(one)) {
    const uint32_t from = same_as(tables, one);
    system_call(__NR_dup3, from, one.number, closes_on_exec(one) ? O_CLOEXEC : 0);
    return;
  }
  const bool given = is_given(one);
  const long fd = given ? outputs::open(one) : open_one(tables, one);
  if (fd < 0) {
    trouble << "descriptor " << uint64_t{one.number} << " (" << tables.text(one.path)
            << ") cannot be opened again (error " << -fd << ")";
    return;
  }
  place(one, fd);
  if (given) return;
  const bool seeks = one.kind == static_cast<uint32_t>(DescriptorKind::file) ||
                     one.kind == static_cast<uint32_t>(DescriptorKind::directory);
  if (seeks) system_call(__NR_lseek, one.number, static_cast<long>(one.offset), 0);
}

bool is_named(const Tables& tables, uint64_t number) {
  for (const Descriptor& one : tables.descriptors) {
    if (one.number == number) return true;
  }
  return false;
}

void close_range(long first, long last) {
  if (first <= last) system_call(__NR_close_range, first, last, 0);
}

// Descriptors of ours that stay, above those of the image; -1: there is none.
struct Kept {
  long control, launcher, watcher;
  long given[outputs::numbers];
  long files[nameless::files_max];
  uint32_t file_count;

  long first_from(long from, long none) const {
    long first = none;
    const auto look = [&](long one) {
      if (one >= from && one < first) first = one;
    };
    look(control);
    look(launcher);
    look(watcher);
    for (const long one : given) look(one);
    for (uint32_t i = 0; i < file_count; ++i) look(files[i]);
    return first;
  }
};

// What this process was started with, and the image does not have.
void close_others(const Tables& tables, const Kept& kept) {
  constexpr long last = 0x7fffffff;
  for (long fd = 0; fd < static_cast<long>(standard); ++fd) {
    if (!is_named(tables, static_cast<uint64_t>(fd)) && fd != kept.control) sys_close(fd);
  }
  for (long from = standard; from <= last;) {
    const long next = kept.first_from(from, last + 1);
    close_range(from, next - 1);
    from = next + 1;
  }
}

void take_numbers(const Tables& tables, Trouble& trouble) {
  const long null = sys_open("/dev/null", O_RDWR | O_CLOEXEC);
  const long fd = null >= 0 ? lift_descriptor(null) : null;
  if (fd < 0) trouble << "/dev/null cannot be opened (error " << -fd << ")";
  if (fd < 0) return;
  FileStatus status;
  for (const Descriptor& one : tables.descriptors) {
    if (descriptor_status(one.number, status)) continue;
    system_call(__NR_dup3, fd, one.number, O_CLOEXEC);
  }
  sys_close(fd);
}

}  // namespace

void cut_back(const Descriptor& one, long fd) {
  FileStatus status;
  if ((one.flags & access_mode) == 0 || !descriptor_status(fd, status)) return;
  if (status.bytes > one.bytes) system_call(__NR_ftruncate, fd, static_cast<long>(one.bytes));
}

void check_numbers(const Tables& tables, long whose, Trouble& trouble) {
  Limit may;
  uint64_t needed = 7;  // three lines, what was given as 0, 1 and 2, and one that is opened
  long top = standard - 1;
  for (const Descriptor& one : tables.descriptors) {
    const bool copied = one.kind == static_cast<uint32_t>(DescriptorKind::pipe) ||
                        one.kind == static_cast<uint32_t>(DescriptorKind::socket) ||
                        nameless::is_one(tables, one);
    needed += copied ? 1 : 0;
    if (static_cast<long>(one.number) > top) top = static_cast<long>(one.number);
  }
  if (whose == 0) above = top + 1;
  if (system_call(__NR_prlimit64, whose, open_files, 0, address_of(&may)) != 0) return;
  if (static_cast<uint64_t>(top) + needed < may.hard) return;
  trouble << "the program has descriptor " << top << " of " << may.hard
          << " that a process may have, and a restart needs " << needed
          << " more for a moment: raise the limit (ulimit -Hn) for backstay run";
}

// Until all descriptors have their numbers, copies of each pipe and pair lie above them.
void raise_descriptor_limit() {
  system_call(__NR_prlimit64, 0, open_files, 0, address_of(&limit));
  const Limit raised{limit.hard, limit.hard};
  system_call(__NR_prlimit64, 0, open_files, address_of(&raised), 0);
}

// The limit stays raised where the image has numbers beyond it: the program had raised it itself.
void lower_descriptor_limit() {
  if (above <= static_cast<long>(limit.soft)) {
    system_call(__NR_prlimit64, 0, open_files, address_of(&limit), 0);
  }
}

long lift_descriptor(long fd) {
  const long lifted = system_call(__NR_fcntl, fd, duplicate_above, above);
  sys_close(fd);
  return lifted;
}

void clear_descriptors(const Tables& tables, bool reserve, long& control, Trouble& trouble) {
  raise_descriptor_limit();
  if (control >= 0) control = lift_descriptor(control);
  long launcher = launcher_descriptor();
  if (launcher >= 0) {
    launcher = lift_descriptor(launcher);
    if (launcher < 0) trouble << "no number is free for the launcher's descriptor";
    if (launcher >= 0) move_launcher_descriptor(launcher);
  }
  if (watch::descriptor() >= 0) watch::move_descriptor(lift_descriptor(watch::descriptor()));
  static Kept kept;
  kept.file_count = nameless::lift(kept.files);
  outputs::lift(kept.given, above);
  kept.control = control;
  kept.launcher = launcher;
  kept.watcher = watch::descriptor();
  close_others(tables, kept);
  if (reserve && trouble.empty()) take_numbers(tables, trouble);
  lower_descriptor_limit();
}

void open_descriptors(const Tables& tables, Trouble& trouble) {
  raise_descriptor_limit();
  for (const Descriptor& one : tables.descriptors) {
    if (trouble.empty()) open_descriptor(tables, one, trouble);
  }
  if (trouble.empty()) watch_again(tables, trouble);
  end_sockets();
  for (uint32_t i = 0; i < pipe_count; ++i) {
    sys_close(pipes[i].ends[0]);
    sys_close(pipes[i].ends[1]);
  }
  nameless::close_all(tables);
  outputs::close_all();
  lower_descriptor_limit();
  system_call(__NR_chdir, address_of(tables.text(tables.identity.cwd)));
  system_call(__NR_umask, tables.identity.umask);
}

}  // namespace backstay::image
