// The two layouts of MPI_Status.
#pragma once

#include "capture/lower/adapter/abi.h"
#include "capture/lower/adapter/errors.h"

namespace backstay::adapter {

struct MpichStatus {
  int count_low, count_high;  // the high one's lowest bit: cancelled
  int source, tag, error;

  uint64_t bytes() const {
    return static_cast<uint32_t>(count_low) |
           static_cast<uint64_t>(static_cast<uint32_t>(count_high) >> 1) << 32;
  }
  bool is_cancelled() const { return (count_high & 1) != 0; }
  void set(uint64_t bytes, bool cancelled) {
    count_low = static_cast<int>(bytes);
    count_high = static_cast<int>(bytes >> 32 << 1 | (cancelled ? 1 : 0));
  }
};
struct OpenMpiStatus {
  int source, tag, error, cancelled;
  uint64_t count;

  uint64_t bytes() const { return count; }
  bool is_cancelled() const { return cancelled != 0; }
  void set(uint64_t bytes, bool is_cancelled) {
    count = bytes;
    cancelled = is_cancelled ? 1 : 0;
  }
};
using FrontStatus = std::conditional_t<front_is_mpich, MpichStatus, OpenMpiStatus>;
using BackStatus = std::conditional_t<front_is_mpich, OpenMpiStatus, MpichStatus>;

// What no MPI writes: where a call has left it, it has written nothing. Calls of files write the
// number of bytes alone.
inline constexpr int not_written = -0x7ffffffe;
inline constexpr uint64_t no_bytes_written = 0x3ffffffffffffff1;

inline BackStatus to_back(const FrontStatus& status) {
  BackStatus result;
  result.source = rank_to_back(status.source);
  result.tag = tag_to_back(status.tag);
  result.error = error_to_back(status.error);
  result.set(status.bytes(), status.is_cancelled());
  return result;
}

inline void put(const BackStatus& status, FrontStatus& to) {
  if (status.source != not_written) to.source = rank_to_front(status.source);
  if (status.tag != not_written) to.tag = tag_to_front(status.tag);
  if (status.error != not_written) to.error = error_to_front(status.error);
  if (status.bytes() != no_bytes_written) to.set(status.bytes(), status.is_cancelled());
}

inline void clear(BackStatus& status) {
  status = {};
  status.source = status.tag = status.error = not_written;
  status.set(no_bytes_written, false);
}

inline bool is_ignored(const void* status) {
  return status == nullptr || status == front.status_ignore || status == front.statuses_ignore;
}

}  // namespace backstay::adapter
