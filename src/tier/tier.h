// A tier keeps named immutable bytes: memory, a directory, later a remote agent or an object store.
// It does not know what the bytes are.
//
// Names are relative, of the parts that paths of docs/format use: letters, digits, ".", "_", "-",
// parts separated by "/" (name.h has the rules); a tier refuses anything else (Code::invalid), so
// that no name leaves it.
//
// Bulk data: a Writer and a Reader belong to one thread and keep several requests in flight. They
// may outlive the tier. A Tier may be used by several threads; calls for the same name must not
// meet. All calls block, except write(), read() and reap(false).
// Implementations: dir.h (a directory of a FileSystem), memory.h. All pass
// tests/conformance/tier_conformance.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "io/ring.h"

namespace backstay::tier {

using Done = io::Completion;

// Writes one new name. Until seal() succeeded the name may be missing or partial after a crash.
class Writer {
 public:
  virtual ~Writer() = default;  // waits for what is in flight; not sealed: what was written stays
                                // as garbage
  virtual unsigned depth() const = 0;  // how many writes may be in flight
  virtual unsigned in_flight() const = 0;
  // Offsets, lengths and addresses are multiples of 4096. `from` stays valid until it is reaped.
  virtual void write(std::uint64_t offset, Bytes from, std::uint64_t tag) = 0;
  // Returns what has completed, in any order; blocks for at least one if `wait` and something is in
  // flight.
  virtual std::vector<Done> reap(bool wait) = 0;
  // Makes content and size safe; the name is safe after Tier::sync of its prefix (or a put beside
  // it). Precondition: all reaped. If a write failed, seal fails with its error. Bytes below
  // `bytes` that were never written are undefined.
  virtual Status seal(std::uint64_t bytes) = 0;
};

class Reader {
 public:
  virtual ~Reader() = default;  // waits for what is in flight
  virtual unsigned depth() const = 0;
  virtual unsigned in_flight() const = 0;
  // As write; a read that goes past the end fails with Code::corrupt.
  virtual void read(std::uint64_t offset, std::span<std::byte> to, std::uint64_t tag) = 0;
  virtual std::vector<Done> reap(bool wait) = 0;
};

class Tier {
 public:
  virtual ~Tier() = default;
  // `bytes` (a guess, may be 0) lets the tier reserve room. An existing name is replaced, not at
  // once: its bytes are undefined until seal(). After an error the name does not exist.
  // Errors: no_space, permission, io, invalid.
  virtual Result<std::unique_ptr<Writer>> create(const std::string& name, std::uint64_t bytes) = 0;
  // Errors: not_found, corrupt (there is something else than a file), permission, io.
  virtual Result<std::unique_ptr<Reader>> open(const std::string& name) = 0;
  // A small object, whole or not at all, safe on return (of it, of its name and of the prefixes
  // above). After an error, or a crash before the return: the old one, the new one, or none if
  // there was none.
  virtual Status put(const std::string& name, Bytes content) = 0;
  // Errors: not_found, too_large (more than `bytes_max`), corrupt (there is something else than a
  // file), io.
  virtual Result<Buffer> get(const std::string& name, std::uint64_t bytes_max) = 0;
  // Names directly below a prefix ("" or "job" or "job/v..."), sorted; a missing prefix is empty.
  // A prefix whose names were all removed one by one may still be listed.
  virtual Result<std::vector<std::string>> list(const std::string& prefix) = 0;
  // Removes a name, or everything below a prefix, the names "commit.*" of each prefix first: after
  // a crash or an error in the middle what is left has no commit record. Missing: ok. Safe on
  // return.
  virtual Status remove(const std::string& name) = 0;
  // Removes what a tier may still keep of a prefix below which there is nothing any more; others
  // may make names there meanwhile. Optional: see list().
  virtual Status remove_if_empty(const std::string& /*prefix*/) { return {}; }
  // Makes the names directly below `prefix`, and those of the prefixes above, safe (directory
  // sync).
  virtual Status sync(const std::string& prefix) = 0;
  // Set-up that the first create() or open() would otherwise pay for. May take a while, may be left
  // out.
  virtual Status prepare() { return {}; }
};

}  // namespace backstay::tier
