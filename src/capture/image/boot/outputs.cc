#include "capture/image/boot/outputs.h"

#include "capture/image/boot/bring_back.h"

namespace backstay::image::outputs {

namespace {

constexpr uint32_t access_mode = 3;
constexpr uint32_t output = 1;
constexpr uint32_t error = 2;
constexpr uint32_t marks_of[numbers] = {0, descriptor_is_output, descriptor_is_error};
constexpr uint32_t given_marks = descriptor_is_output | descriptor_is_error;
constexpr long duplicate_above = 0;  // F_DUPFD
constexpr long from_start = 0;       // SEEK_SET
constexpr long from_end = 2;         // SEEK_END

struct Given {
  FileStatus status;
  bool known = false;
};
Given of_parent[numbers];

long copies[numbers] = {-1, -1, -1};

// 0: they are one open file. Negative: the kernel does not tell.
long compare_with_parent(uint32_t number, uint32_t given) {
  return system_call(__NR_kcmp, system_call(__NR_getpid), system_call(__NR_getppid), 0, number,
                     given);
}

bool writes(const Descriptor& one) { return (one.flags & access_mode) != 0; }

bool is_file(const Descriptor& one) {
  return one.kind == static_cast<uint32_t>(DescriptorKind::file);
}

// The file of before, which was not emptied since then.
bool is_same(const Descriptor& one, long fd) {
  FileStatus now;
  return is_file(one) && descriptor_status(fd, now) && now.device == one.device &&
         now.inode == one.inode && now.bytes >= one.bytes;
}

// The program has opened the file of its standard output or error itself (/dev/stdout), and so has
// an offset of its own there. Standard error has come further since then.
long open_apart(const Descriptor& one, int number) {
  Text link;
  link << "/proc/self/fd/" << copies[number];
  const long fd = sys_open(link.c_str(), static_cast<int>(one.flags & ~only_at_first));
  if (fd < 0) return fd;
  if (number == output) system_call(__NR_lseek, fd, static_cast<long>(one.offset), from_start);
  if (number == error) system_call(__NR_lseek, fd, 0, from_end);
  return fd;
}

}  // namespace

bool keeps = false;

void look_at_parent() {
  for (uint32_t number = 0; number < numbers; ++number) {
    Text link;
    link << "/proc/" << system_call(__NR_getppid) << "/fd/" << uint64_t{number};
    of_parent[number].known = file_status(link.c_str(), of_parent[number].status);
  }
}

void mark(const FileStatus& status, Descriptor& one) {
  uint32_t opened = 0;
  uint32_t alike = 0;
  uint32_t apart = status.is_regular() ? descriptor_is_apart : 0;
  bool is_other = false;
  for (uint32_t number = 0; number < numbers; ++number) {
    const Given& given = of_parent[number];
    if (!given.known) continue;
    if (given.status.device != status.device || given.status.inode != status.inode) {
      is_other = is_other || number == one.number;
      continue;
    }
    if (number == 0 && one.number == 0) return;
    const long compared = compare_with_parent(one.number, number);
    if (compared < 0) apart = 0;
    if (compared == 0) opened |= marks_of[number];
    alike |= marks_of[number];
  }
  // Programs open the same device, such as /dev/null, for ends of their own.
  if (opened == 0 && (status.is_regular() || status.is_pipe())) opened = alike | apart;
  if (writes(one) && (opened & given_marks) != 0) {
    one.marks |= opened;
  } else if (is_other && status.is_regular()) {
    one.marks |= descriptor_is_own;
  }
}

int given(const Descriptor& one) {
  const bool inherited = one.kind == static_cast<uint32_t>(DescriptorKind::inherited);
  const bool device = one.kind == static_cast<uint32_t>(DescriptorKind::device);
  const auto number = static_cast<int>(one.number);
  if (!keeps) return inherited && one.number < numbers ? number : -1;
  if (!inherited && !device && !is_file(one)) return -1;
  if (const uint32_t marked = given_output(one); marked != 0) return static_cast<int>(marked);
  if (inherited && one.number < numbers) return number;
  // The image has no marks: an older Backstay wrote it, or the cut could not look at the parent.
  const bool is_standard = one.number == output || one.number == error;
  const bool is_own = (one.marks & descriptor_is_own) != 0;
  return is_standard && is_file(one) && !is_own && writes(one) ? number : -1;
}

void lift(long (&lifted)[numbers], long above) {
  for (uint32_t number = 0; number < numbers; ++number) {
    const long copy = system_call(__NR_fcntl, number, duplicate_above, above);
    lifted[number] = copies[number] = copy < 0 ? -1 : copy;
  }
}

long open(const Descriptor& one) {
  const int number = given(one);
  const bool apart = (one.marks & descriptor_is_apart) != 0;
  if (apart && one.same_as != one.number) return system_call(__NR_dup, one.same_as);
  if (number < 0 || copies[number] < 0) return sys_open("/dev/null", O_RDWR);
  const bool same = is_same(one, copies[number]);
  if (same && number == output) cut_back(one, copies[number]);
  if (same && apart) {
    const long fd = open_apart(one, number);
    if (fd >= 0) return fd;
  }
  if (same && number == output && !apart) {
    system_call(__NR_lseek, copies[number], static_cast<long>(one.offset), from_start);
  }
  return system_call(__NR_dup, copies[number]);
}

void close_all() {
  for (long& copy : copies) {
    if (copy >= 0) sys_close(copy);
    copy = -1;
  }
}

}  // namespace backstay::image::outputs
