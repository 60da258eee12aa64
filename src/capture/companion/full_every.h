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
  // This rank would keep chunks of the version before in the next cut.
  bool wants_base() const { return watched_ && kept_ + 1 < every_; }
  // Of the next cut. `has_base`: the version before is a base of the next one, on all ranks; of one
  // of them wants_base() is true. Each call has its taken() or failed().
  Cut next(bool has_base);
  // The version is taken. `kept_bytes` of its `bytes` are chunks of the version before. The ranks
  // count alike: those that keep nothing of a base end no chain.
  void taken(std::uint64_t bytes, std::uint64_t kept_bytes);
  void failed() { watched_ = false; }
  // Between next() and taken(), of that version: how many before it lead to it, each the base of
  // the next one.
  std::uint32_t chain() const { return has_base_ ? kept_ + 1 : 0; }
  // A version with this chain() may be a base.
  bool may_follow(std::uint32_t chain) const { return chain + 1 < every_; }
  // The program was brought back from such a version, and is watched since then.
  void restarted(std::uint32_t chain) {
    kept_ = chain;
    watched_ = true;
  }

 private:
  const std::uint32_t every_;
  Cut cut_;
  bool has_base_ = false;     // that cut
  bool watched_ = false;      // the last cut, and it became a version
  std::uint32_t kept_ = 0;    // versions since the last one without a base
  std::uint32_t pauses_ = 0;  // versions before writes are watched again
};

}  // namespace backstay::image
