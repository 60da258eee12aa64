// A file that is on its way onto this node's disk piece by piece, from other nodes: a copy (kept_copy.h) or parity
// (kept_parity.h). It exists from seal() on.
//
// Of one thread. Blocks on the tier when it seals.
#pragma once

#include <functional>
#include <optional>

#include "agent/held_files.h"
#include "format/manifest.h"

namespace backstay::agent {

class KeptFile {
 public:
  using Done = std::function<void(Status)>;
  virtual ~KeptFile() = default;

  // Checks and writes a piece, which stays valid until `done`: in the call (corrupt: nothing was written) or in reap().
  virtual void write(std::uint64_t offset, Bytes piece, Done done) = 0;
  virtual unsigned in_flight() const = 0;
  // True if something has completed. Blocks for at least one request if `wait` and something is in flight.
  virtual bool reap(bool wait) = 0;

  // The file exists afterwards, safe from a crash. `record`: of the version, put where the folder has none.
  // Errors: again (the folder was removed meanwhile), no_space, io.
  virtual Status seal(const std::optional<format::CommitRecord>& record) = 0;
  // Takes away what was written, and no more.
  virtual Status remove_rest() = 0;
  // What there is after seal(), but for the record.
  virtual HeldFile held() const = 0;
};

}  // namespace backstay::agent
