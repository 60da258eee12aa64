#include "capture/image/boot/numbers.h"

#include "capture/image/boot/nameless.h"

namespace backstay::image {

namespace {

constexpr long most = 1 << 20;       // Linux's default limit (fs.nr_open)
constexpr long standard = 3;         // 0, 1, 2: given by what starts the program
constexpr long duplicate_above = 0;  // F_DUPFD
constexpr long open_files = 7;       // RLIMIT_NOFILE

struct Limit {
  uint64_t soft = 0, hard = 0;
};
Limit limit;
bool taken[most];  // by the image
long top = -1;     // the last of them

bool is_taken(long number) { return number < most && taken[number]; }

bool is_repeated(const Tables& tables, const Descriptor& of) {
  for (const Descriptor& one : tables.descriptors) {
    if (&one == &of) return false;
    if (one.kind == of.kind && one.inode == of.inode && one.device == of.device) return true;
  }
  return false;
}

// The line to the companion, what the new process was given as 0, 1 and 2, and each pipe, end of a
// pair and file without a name once more.
uint64_t beside_the_image(const Tables& tables) {
  uint64_t count = 4;
  for (const Descriptor& one : tables.descriptors) {
    const bool pipe = one.kind == static_cast<uint32_t>(DescriptorKind::pipe);
    const bool socket = one.kind == static_cast<uint32_t>(DescriptorKind::socket);
    if (!pipe && !socket && !nameless::is_one(tables, one)) continue;
    if (!is_repeated(tables, one)) count += pipe ? 2 : 1;
  }
  return count;
}

}  // namespace

void check_numbers(const Tables& tables, bool restart, Trouble& trouble) {
  for (const Descriptor& one : tables.descriptors) {
    if (!restart || one.number >= most) continue;
    taken[one.number] = true;
    if (top < static_cast<long>(one.number)) top = static_cast<long>(one.number);
  }
  Limit may;
  const long whose = restart ? 0 : system_call(__NR_getppid);
  if (system_call(__NR_prlimit64, whose, open_files, 0, address_of(&may)) != 0) return;
  const uint64_t spare = beside_the_image(tables);
  if (tables.descriptors.size() + spare <= may.hard && top < static_cast<long>(may.hard)) return;
  trouble << "the program has " << tables.descriptors.size() << " of " << may.hard
          << " descriptors open that a process may have, and a restart needs " << spare
          << " more for a moment: raise the limit (ulimit -Hn) for backstay run";
}

void raise_descriptor_limit() {
  system_call(__NR_prlimit64, 0, open_files, 0, address_of(&limit));
  const Limit raised{limit.hard, limit.hard};
  system_call(__NR_prlimit64, 0, open_files, address_of(&raised), 0);
}

// The limit stays raised where the image has numbers beyond it: the program had raised it itself.
void lower_descriptor_limit() {
  if (top < static_cast<long>(limit.soft)) {
    system_call(__NR_prlimit64, 0, open_files, address_of(&limit), 0);
  }
}

long copy_descriptor(long fd) {
  for (long from = standard;;) {
    while (is_taken(from)) ++from;
    const long copy = system_call(__NR_fcntl, fd, duplicate_above, from);
    if (copy < 0 || !is_taken(copy)) return copy;
    sys_close(copy);
    from = copy + 1;
  }
}

long lift_descriptor(long fd) {
  const long lifted = copy_descriptor(fd);
  sys_close(fd);
  return lifted;
}

}  // namespace backstay::image
