// Which versions of a program hold all of its memory, and which keep what did not change
// (docs/format/image.md, "Pages that are kept"). Pure.
//
// To know what changes costs a fault for each page at its first write after a cut. Where most pages
// are written between two cuts nothing is gained for it: then it is left for some versions.
#pragma once

#include <cstdint>

namespace backstay::image {

class FullEvery {
 public:
  explicit FullEvery(std::uint32_t versions) : every_(versions) {}

  struct Cut {
    bool keeps = false;    // chunks of the version before
    bool watches = false;  // so that the next one may keep chunks of this
  };
  // Of the next cut. `has_base`: the version before may be a base. Each call has its taken() or
  // failed().
  Cut next(bool has_base);
  // The version is taken. `kept_bytes` of its `bytes` are chunks of the version before.
  void taken(std::uint64_t bytes, std::uint64_t kept_bytes);
  void failed() { watched_ = false; }

 private:
  const std::uint32_t every_;
  Cut cut_;
  bool watched_ = false;      // the last cut, and it became a version
  std::uint32_t kept_ = 0;    // versions since the last full one
  std::uint32_t pauses_ = 0;  // versions before writes are watched again
};

}  // namespace backstay::image
