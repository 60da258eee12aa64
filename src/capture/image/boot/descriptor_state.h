// The state of a descriptor that is no file: read from /proc/self/fdinfo, and kept in the contents
// of the image. One thread at a time.
#pragma once

#include "capture/image/boot/files.h"
#include "capture/image/boot/tables.h"

namespace backstay::image {

Lines info_of(const Descriptor& one);
// False: `name` is not in the line. Else `at` is at the value behind it.
bool find_in(const char* line, const char* name, const char*& at);

// Adds these bytes to the state of this descriptor. Between two calls for one descriptor nothing of
// another one may be added. Trouble: the contents are full.
void keep_state(Tables& tables, Descriptor& one, const void* bytes, uint64_t size,
                Trouble& trouble);

// Copies the record with this index out of the state. False: there are fewer.
template <typename State>
bool state_of(const Tables& tables, const Descriptor& one, uint64_t index, State& state) {
  if ((index + 1) * sizeof(State) > one.contents_bytes) return false;
  memcpy(&state, &tables.contents[one.contents + index * sizeof(State)], sizeof(State));
  return true;
}

// A duplicate of a descriptor of the program, closed with this object. fd(): negative after an
// error.
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
