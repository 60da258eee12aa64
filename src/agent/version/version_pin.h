// What keeps a version on this node's disk although retention could remove it.
#pragma once

#include <utility>

#include "base/ids.h"

namespace backstay::agent {

enum class PinReason {
  replicating,    // another node is asked to keep a copy of a file of it
  receiving,      // a copy of another node's file of it is on its way here
  encoding,       // parity of it is made
  copying,        // it is on its way to shared storage
  retention_pin,  // its turn to become protected (agent/redundancy/retention_pin.h)
  not_home,       // captured files: they are not at their own places yet
  base,           // a version that is taken keeps chunks of it
  went_on_from,   // the run was restarted from it, and no newer version of the run is announced
};
inline constexpr std::size_t pin_reasons = 8;

class VersionTable;

// Pins a version for as long as it lives; an empty one pins nothing. The table must outlive it.
// A pin is of a number: it may be taken before the version's first file is here.
class VersionPin {
 public:
  VersionPin() = default;
  VersionPin(VersionTable& table, VersionNumber version, PinReason why);
  ~VersionPin() { release(); }
  VersionPin(VersionPin&& other) noexcept
      : table_(std::exchange(other.table_, nullptr)), version_(other.version_), why_(other.why_) {}
  VersionPin& operator=(VersionPin&& other) noexcept;
  VersionPin(const VersionPin&) = delete;
  VersionPin& operator=(const VersionPin&) = delete;

  void release();
  // 0: it is empty.
  VersionNumber version() const { return table_ == nullptr ? 0 : version_; }
  explicit operator bool() const { return table_ != nullptr; }

 private:
  VersionTable* table_ = nullptr;
  VersionNumber version_ = 0;
  PinReason why_ = PinReason::replicating;
};

}  // namespace backstay::agent
