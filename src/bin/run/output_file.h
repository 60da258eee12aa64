// Where the standard output of a program begins, where it is a file: an attempt of a transparent
// program that starts from the beginning again would print everything twice. Attempts that go on
// from a version are cut back to its length by their companion (docs/guide/transparent.md).
#pragma once

#include <sys/types.h>

#include <optional>

namespace backstay::bin {

class OutputFile {
 public:
  // Of an open descriptor, which outlives this.
  explicit OutputFile(int descriptor);

  // Takes away what came since, where it is a plain file. The descriptor's position goes back with
  // the length. What cannot be cut stays.
  void cut_back() const;

 private:
  const int descriptor_;
  std::optional<off_t> begin_;  // none: a pipe, a terminal
};

}  // namespace backstay::bin
