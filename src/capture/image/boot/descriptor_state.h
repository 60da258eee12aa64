// The state of a descriptor that is no file: read from /proc/self/fdinfo, and kept in the contents
// of the image. Any one thread.
#pragma once

#include "capture/image/boot/files.h"
#include "capture/image/boot/tables.h"

namespace backstay::image {

Lines info_of(const Descriptor& one);
// Finds `name` in the line, and leaves `at` at the number behind it.
bool find_in(const char* line, const char* name, const char*& at);

// Adds to what is kept of this descriptor. Nothing else may be kept in between.
void keep_state(Tables& tables, Descriptor& one, const void* bytes, uint64_t size,
                Trouble& trouble);

// The record of this index. False: there are fewer.
template <typename State>
bool state_of(const Tables& tables, const Descriptor& one, uint64_t index, State& state) {
  if ((index + 1) * sizeof(State) > one.contents_bytes) return false;
  memcpy(&state, &tables.contents[one.contents + index * sizeof(State)], sizeof(State));
  return true;
}

// A copy of an open file of the program, as long as it lives.
class Borrowed {
 public:
  explicit Borrowed(const Descriptor& one) : fd_(borrow_descriptor(one.number)) {}
  ~Borrowed() {
    if (fd_ >= 0) sys_close(fd_);
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  long fd() const { return fd_; }

 private:
  long fd_;
};

}  // namespace backstay::image
