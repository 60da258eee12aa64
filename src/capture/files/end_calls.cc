// Calls that end a descriptor, or make another one for the same opening.
#include <linux/close_range.h>

#include <cstdarg>

#include "capture/files/capture.h"
#include "capture/files/descriptors.h"
#include "capture/files/export.h"
#include "capture/files/raw.h"

namespace backstay::files {
namespace {

// Error number of what ended with the descriptor; the descriptor itself is still to be closed.
int end_if_captured(int fd) {
  if (opening_of(fd) == nullptr) return 0;
  Lock lock;
  return end_descriptor(fd);
}

// `copy` is a new descriptor for what `fd` leads to.
int copied(int fd, int copy) {
  if (copy < 0 || opening_of(fd) == nullptr) return copy;
  Lock lock;
  Opening* opening = table().find(fd);
  if (opening == nullptr) return copy;
  if (copy < descriptors_max) {
    table().bind(copy, *opening);
  } else {
    make_real(*opening->file);
    raw::dup3(fd, copy, (raw::fcntl(copy, F_GETFD) & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
  }
  return copy;
}

// Before the program puts something at the number `fd`, which may be one of ours.
void make_room(int fd) {
  if (!table().is_ours(fd) || !is_owner()) return;
  Lock lock;
  make_all_real();
}

}  // namespace

EXPORT(int, close, (int fd)) {
  if (table().is_ours(fd) && is_owner()) return answer(EBADF);
  if (opening_of(fd) == nullptr) return NEXT(close)(fd);
  const int error = end_if_captured(fd);
  const int result = NEXT(close)(fd);
  return error != 0 ? answer(error) : result;
}

EXPORT(int, dup, (int fd)) { return copied(fd, NEXT(dup)(fd)); }

static bool is_replaced(int fd, int to) { return fd != to && raw::fcntl(fd, F_GETFD) >= 0; }

EXPORT(int, dup2, (int fd, int to)) {
  if (table().empty() || !is_replaced(fd, to)) return NEXT(dup2)(fd, to);
  make_room(to);
  end_if_captured(to);
  return copied(fd, NEXT(dup2)(fd, to));
}

EXPORT(int, dup3, (int fd, int to, int flags)) {
  const bool usual = (flags & ~O_CLOEXEC) == 0;
  if (table().empty() || !usual || !is_replaced(fd, to)) return NEXT(dup3)(fd, to, flags);
  make_room(to);
  end_if_captured(to);
  return copied(fd, NEXT(dup3)(fd, to, flags));
}

// Closes first to last but what is ours.
static int close_around(unsigned first, unsigned last) {
  int result = 0;
  unsigned begin = first;
  for (unsigned fd = first; fd <= last && fd < descriptors_max; ++fd) {
    if (!table().is_ours(static_cast<int>(fd))) continue;
    if (begin < fd) result |= static_cast<int>(raw::call(SYS_close_range, begin, fd - 1, 0U));
    begin = fd + 1;
  }
  if (begin <= last) result |= static_cast<int>(raw::call(SYS_close_range, begin, last, 0U));
  return result < 0 ? answer(-result) : 0;
}

static int close_many(unsigned first, unsigned last) {
  for (unsigned fd = first; fd <= last && fd < descriptors_max; ++fd) {
    end_if_captured(static_cast<int>(fd));
  }
  return close_around(first, last);
}

// CLOSE_RANGE_UNSHARE gives this thread a table of descriptors of its own. In that the library
// could not tell which ones are ours.
static void before_unshare(int flags) {
  if ((flags & CLOSE_RANGE_UNSHARE) == 0 || !is_anything_captured()) return;
  Lock lock;
  make_all_real();
}

EXPORT(int, close_range, (unsigned first, unsigned last, int flags)) {
  before_unshare(flags);
  const bool usual = flags == 0 && first <= last && is_anything_captured();
  return usual ? close_many(first, last) : NEXT(close_range)(first, last, flags);
}

EXPORT(void, closefrom, (int first)) {
  if (!is_anything_captured()) {
    NEXT(closefrom)(first);
  } else {
    close_many(first < 0 ? 0 : static_cast<unsigned>(first), ~0U);
  }
}

namespace {

enum class Kind { copies, locks, flags, other };

Kind kind_of(int command) {
  switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC: return Kind::copies;
    case F_GETFD:
    case F_SETFD: return Kind::other;
    case F_GETFL:
    case F_SETFL: return Kind::flags;
    default: return Kind::locks;  // and leases, seals, owners: what other processes could see
  }
}

// The flags as the kernel tells them for the real descriptor, but those that SETFL changes.
int all_flags(int real, int memory) {
  constexpr int changed = O_APPEND | O_NONBLOCK | O_NOATIME;
  return memory < 0 ? memory : (raw::fcntl(real, F_GETFL) & ~changed) | (memory & changed);
}

template <typename Next>
int control(int fd, int command, long argument, Next next) {
  const Opening* opening = opening_of(fd);
  if (opening == nullptr) return next(fd, command, argument);
  switch (kind_of(command)) {
    case Kind::copies: return copied(fd, next(fd, command, argument));
    case Kind::locks: make_locked_real(fd); break;
    case Kind::flags:
      if (command == F_GETFL) return all_flags(opening->real, next(fd, command, argument));
      if ((argument & (O_DIRECT | O_ASYNC)) != 0) make_descriptor_real(fd);
      break;
    case Kind::other: break;
  }
  return next(fd, command, argument);
}

}  // namespace

#define CONTROLS(name)                                 \
  EXPORT(int, name, (int fd, int command, ...)) {      \
    va_list list;                                      \
    va_start(list, command);                           \
    const long argument = va_arg(list, long);          \
    va_end(list);                                      \
    return control(fd, command, argument, NEXT(name)); \
  }
CONTROLS(fcntl)
CONTROLS(fcntl64)

}  // namespace backstay::files
