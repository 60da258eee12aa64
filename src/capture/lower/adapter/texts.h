// Texts that MPI writes: no more of them than the front promises.
#pragma once

#include <string.h>

#include "capture/lower/adapter/errors.h"

namespace backstay::adapter {

class OutText {
 public:
  // `limit`: its number in constants.txt. Both ends may be null.
  OutText(char* to, int* length, Number limit) : to_(to), to_length_(length) {
    const int of_front = front.numbers[limit];
    limit_ = of_front != backstay_absent ? of_front : 128;
  }
  char* place() { return here_; }
  int* length() { return &length_; }
  int put(int result) {
    if (result != 0) return error_to_front(result);
    const int end = static_cast<int>(strnlen(here_, static_cast<size_t>(limit_ - 1)));
    if (to_ != nullptr) {
      memcpy(to_, here_, static_cast<size_t>(end));
      to_[end] = 0;
    }
    if (to_length_ != nullptr) *to_length_ = end;
    return 0;
  }

 private:
  char* to_;
  int* to_length_;
  int limit_;
  int length_ = 0;
  char here_[8192] = "";  // MPICH's MPI_MAX_LIBRARY_VERSION_STRING is the longest of all
};

}  // namespace backstay::adapter
