// Open descriptors: files with their offsets, pipes and sockets of the program to itself, event
// counters, epoll sets, timers and signal sets, devices that have no state, and those that it was
// started with.
#include "capture/image/boot/bring_back.h"
#include "capture/image/boot/describe.h"
#include "capture/image/boot/events.h"
#include "capture/image/boot/files.h"
#include "capture/image/boot/lower_descriptors.h"
#include "capture/image/boot/lower_half.h"
#include "capture/image/boot/nameless.h"
#include "capture/image/boot/outputs.h"
#include "capture/image/boot/pipes.h"
#include "capture/image/boot/socket_pairs.h"

namespace backstay::image {

namespace {

constexpr uint32_t flag_close_on_exec = 02000000;
constexpr uint32_t access_mode = 3;
constexpr uint32_t write_only = 1;
constexpr uint32_t kept_mode = 0100777;  // also that it is a regular file: so it is not 0
constexpr uint64_t standard = 3;         // 0, 1, 2: given by what starts the program
constexpr int looks_max = 4;

struct Open {
  uint64_t number;
  FileStatus status;
  char path[4096];
};

void read_info(uint64_t number, Descriptor& out) {
  Text path;
  path << "/proc/self/fdinfo/" << number;
  Lines lines(path.c_str());
  while (const char* line = lines.next()) {
    if (begins_with(line, "pos:\t")) {
      const char* at = line + 5;
      out.offset = read_decimal(at);
    }
    if (!begins_with(line, "flags:\t")) continue;
    uint32_t flags = 0;
    for (const char* at = line + 7; *at >= '0' && *at <= '7'; ++at) {
      flags = flags * 8 + static_cast<uint32_t>(*at - '0');
    }
    if ((flags & flag_close_on_exec) != 0) out.marks |= descriptor_closed_on_exec;
    out.flags = flags & ~flag_close_on_exec;
  }
}

bool is_plain_device(const char* path) {
  static constexpr const char* plain[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                          "/dev/urandom"};
  for (const char* one : plain) {
    if (same_text(path, one)) return true;
  }
  return false;
}

bool is_terminal(const char* path) {
  return begins_with(path, "/dev/pts/") || begins_with(path, "/dev/tty") ||
         same_text(path, "/dev/console");
}

bool look_at(uint64_t number, Open& open) {
  open.number = number;
  Text link;
  link << "/proc/self/fd/" << number;
  return read_link(link.c_str(), open.path, sizeof open.path) &&
         file_status(link.c_str(), open.status);
}

// The other end of a pipe is among the program's own descriptors.
bool has_both_ends(const Tables& tables, const Descriptor& one) {
  for (const Descriptor& other : tables.descriptors) {
    if (other.inode == one.inode && other.device == one.device &&
        other.kind == static_cast<uint32_t>(DescriptorKind::pipe) &&
        (other.flags & access_mode) != (one.flags & access_mode)) {
      return true;
    }
  }
  return false;
}

// The first of the descriptors before `of` that has the same file open, and has it in the image:
// one that was opened by another name, which still stands, has not.
const Descriptor* same_file(const Tables& tables, const Descriptor& of) {
  for (const Descriptor& one : tables.descriptors) {
    if (&one == &of) break;
    const bool same = one.inode == of.inode && one.device == of.device;
    if (same && nameless::is_one(tables, one)) return &one;
  }
  return nullptr;
}

// A file without a name lives in the image, once.
void keep_content(const Open& open, Tables& tables, Descriptor& out, Trouble& trouble) {
  if (const Descriptor* same = same_file(tables, out)) {
    out.contents = same->contents;
    out.contents_bytes = same->contents_bytes;
    return;
  }
  Text link;
  link << "/proc/self/fd/" << open.number;
  const uint64_t bytes = open.status.bytes;
  const long fd = sys_open(link.c_str(), O_RDONLY | O_CLOEXEC);
  const uint64_t at = tables.contents.size();
  if (fd < 0 || bytes > tables.contents.room() - at) {
    trouble << "descriptor " << open.number << " (" << open.path << ") is a removed file that "
            << (fd < 0 ? "cannot be read" : "is too large to be kept in an image");
    return;
  }
  tables.contents.resize(at + bytes);
  out.contents = at;
  if (bytes > 0) {
    out.contents_bytes = static_cast<uint64_t>(sys_pread(fd, &tables.contents[at], bytes, 0));
  }
  sys_close(fd);
}

// A restart knows the file by its inode and this time: a new file may get the inode of a removed
// one.
void keep_birth(const Open& open, Tables& tables, Descriptor& out) {
  Text link;
  link << "/proc/self/fd/" << open.number;
  uint64_t born_ns = 0;
  const uint64_t at = tables.contents.size();
  if (tables.contents.room() - at < sizeof born_ns || !birth_time(link.c_str(), born_ns)) return;
  tables.contents.resize(at + sizeof born_ns);
  memcpy(&tables.contents[at], &born_ns, sizeof born_ns);
  out.contents = at;
  out.contents_bytes = sizeof born_ns;
}

// An image has the content of a removed file alone. What the program writes to it after a restart
// would not be in the file that stands under another name.
void refuse_other_names(const Open& open, const Descriptor& one, Trouble& trouble) {
  if (open.status.names == 0 || (one.flags & access_mode) == 0) return;
  FileStatus named;
  const bool is_its_name = link_status(open.path, named) && named.inode == one.inode;
  trouble << "descriptor " << open.number << " is " << open.path
          << (is_its_name ? ", whose name looks like that of a removed file"
                          : ", which has another name: open it by that one");
}

DescriptorKind kind_of(const Open& open, Trouble& trouble) {
  const FileStatus& status = open.status;
  if (status.is_regular()) return DescriptorKind::file;
  if (status.is_directory()) return DescriptorKind::directory;
  if (status.is_pipe()) return DescriptorKind::pipe;
  if (status.is_device() && is_plain_device(open.path)) return DescriptorKind::device;
  const bool terminal = status.is_device() && is_terminal(open.path);
  if (open.number < standard || terminal) return DescriptorKind::inherited;
  if (status.is_socket()) return DescriptorKind::socket;
  const DescriptorKind event = event_kind(open.path);
  if (event == DescriptorKind::inherited) {
    trouble << "descriptor " << open.number << " is " << open.path << ": it cannot be saved";
  }
  return event;
}

// A path in /proc holds a process id, which a restart changes. The program's own files there get
// the name /proc/self, under which the new process finds its own. All others are refused.
void name_without_id(Open& open, Trouble& trouble) {
  constexpr size_t above = sizeof "/proc/" - 1;
  if (!begins_with(open.path, "/proc/") || open.path[above] < '0' || open.path[above] > '9') return;
  const char* rest = open.path + above;
  const auto process = static_cast<long>(read_decimal(rest));
  if (process == system_call(__NR_getpid) && !begins_with(rest, "/task/")) {
    Text own;
    own << "/proc/self" << rest;
    copy_text(open.path, sizeof open.path, own.c_str());
  } else {
    trouble << "descriptor " << open.number << " is " << open.path << ": it cannot be saved";
  }
}

void add_descriptor(uint64_t number, Tables& tables, Trouble& trouble) {
  static Open open;
  if (!look_at(number, open)) return;  // closed meanwhile: of the kernel's, none of the program's
  if (lower_descriptors::has(number, open.status.inode)) return;
  Descriptor* out = tables.descriptors.add();
  if (out == nullptr) {
    trouble << "more descriptors are open than an image can name";
    return;
  }
  *out = Descriptor{};
  out->number = static_cast<uint32_t>(number);
  out->same_as = out->number;
  out->device = open.status.device;
  out->inode = open.status.inode;
  out->bytes = open.status.bytes;
  out->kind = static_cast<uint32_t>(kind_of(open, trouble));
  read_info(number, *out);
  outputs::mark(open.status, *out);
  // A shell copies its output, which may be a socket: the other end is its reader's.
  const bool socket = out->kind == static_cast<uint32_t>(DescriptorKind::socket);
  if (socket && given_output(*out) != 0) {
    out->kind = static_cast<uint32_t>(DescriptorKind::inherited);
  }
  const bool is_file = out->kind == static_cast<uint32_t>(DescriptorKind::file);
  const bool is_folder = out->kind == static_cast<uint32_t>(DescriptorKind::directory);
  name_without_id(open, trouble);
  out->path = tables.add_text(open.path);
  const bool has_name = is_folder || (is_file && !nameless::is_one(tables, *out));
  FileStatus there;  // a message queue has a name in no folder
  const bool given = number < standard || given_output(*out) != 0;
  if (has_name && !given && trouble.empty() && !file_status(open.path, there))
    trouble << "descriptor " << number << " is " << open.path << ": it cannot be saved";
  if (!is_file) return;
  if (!has_name) {
    out->marks |= (open.status.mode & kept_mode) << descriptor_mode_shift;
    refuse_other_names(open, *out, trouble);
    if (trouble.empty()) keep_content(open, tables, *out, trouble);
  } else if ((out->flags & access_mode) != 0) {
    keep_birth(open, tables, *out);
  }
}

// Descriptors that share one open file (dup, or inherited): they share its offset.
void find_shared(Tables& tables) {
  const long process = system_call(__NR_getpid);
  Row<Descriptor>& all = tables.descriptors;
  for (uint64_t i = 1; i < all.size(); ++i) {
    for (uint64_t k = 0; k < i; ++k) {
      if (all[i].inode != all[k].inode || all[i].device != all[k].device) continue;
      if (system_call(__NR_kcmp, process, process, 0, all[k].number, all[i].number) == 0) {
        all[i].same_as = all[k].number;
        break;
      }
    }
  }
}

void settle_pipes(Tables& tables, Trouble& trouble) {
  for (Descriptor& one : tables.descriptors) {
    if (one.kind != static_cast<uint32_t>(DescriptorKind::pipe)) continue;
    const bool reads = (one.flags & access_mode) == 0;
    if (has_both_ends(tables, one)) {
      if (reads) keep_pipe(tables, one, trouble);
    } else if (reads && is_finished(one)) {
      keep_pipe(tables, one, trouble);  // all of it that is left to read
    } else if (one.number < standard || (one.flags & access_mode) == write_only) {
      // What went into it cannot be taken back, as with standard output.
      one.kind = static_cast<uint32_t>(DescriptorKind::inherited);
    } else {
      trouble << "descriptor " << uint64_t{one.number} << " is a pipe from another process, which "
              << "does not write the same again: give the program a file in its place, or close it "
              << "for the program (" << uint64_t{one.number} << "<&-)";
    }
    if (!trouble.empty()) return;
  }
}

void keep_states(Tables& tables, Trouble& trouble) {
  for (Descriptor& one : tables.descriptors) {
    if (one.same_as != one.number && one.same_as >= standard) continue;
    if (one.kind == static_cast<uint32_t>(DescriptorKind::socket))
      keep_socket(tables, one, trouble);
    if (is_event(one.kind)) keep_event(tables, one, trouble);
    if (!trouble.empty()) return;
  }
}

// Threads of the lower half run on: one of them may have opened what its bitmap does not have yet,
// or be about to close what its bitmap does not have any more.
bool is_certain(const Tables& tables) {
  FileStatus now;
  for (const Descriptor& one : tables.descriptors) {
    Text link;
    link << "/proc/self/fd/" << uint64_t{one.number};
    if (lower_descriptors::has(one.number, one.inode) || !file_status(link.c_str(), now) ||
        now.inode != one.inode || now.device != one.device) {
      return false;
    }
  }
  return true;
}

void add_descriptors(Tables& tables, Trouble& trouble) {
  const uint64_t contents = tables.contents.size();
  outputs::look_at_parent();
  for (int look = 0; look < looks_max; ++look) {
    trouble.clear();
    tables.descriptors.resize(0);
    tables.contents.resize(contents);
    each_number("/proc/self/fd", [&](uint64_t number) {
      if (trouble.empty()) add_descriptor(number, tables, trouble);
    });
    if (lower_library() == nullptr || (trouble.empty() && is_certain(tables))) return;
  }
}

}  // namespace

bool writes_come_unseen() {
  bool unseen = false;
  each_number("/proc/self/fd", [&](uint64_t number) {
    static Open open;
    if (unseen || !look_at(number, open)) return;
    const bool device =
        open.status.is_device() && !is_plain_device(open.path) && !is_terminal(open.path);
    unseen = device || same_text(open.path, "anon_inode:[io_uring]");
  });
  return unseen;
}

void describe_descriptors(Tables& tables, Trouble& trouble) {
  add_descriptors(tables, trouble);
  if (!trouble.empty()) return;
  find_shared(tables);
  settle_pipes(tables, trouble);
  if (trouble.empty()) keep_states(tables, trouble);
  if (trouble.empty()) check_numbers(tables, system_call(__NR_getppid), trouble);
}

}  // namespace backstay::image
