// The arithmetic of parity: some blocks of a stripe out of k others, Reed-Solomon over GF(2^8)
// (docs/protocol/parity.md, "Arithmetic"), by ISA-L. Without ISA-L every make() is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/result.h"
#include "protect/groups.h"

namespace backstay::protect {

// Immutable after make(): one may serve many threads. Allocates in make() only.
class Combination {
 public:
  // Of blocks in a stripe: parity 0 .. m-1, then data.
  using Indexes = std::span<const std::uint32_t>;
  using Outputs = std::span<const std::span<std::byte>>;

  // Preconditions: a shape that make_groups allows; k `reads`, 1 to 4 `makes`, none twice.
  // Errors: unsupported (a build without ISA-L).
  static Result<Combination> make(ParityShape shape, Indexes reads, Indexes makes);

  // In both: the outputs, one for each of `makes`, are equally long and overlap no source. A source
  // may end before them: the rest counts as zeros.

  // outputs = the blocks made out of all `sources`, which are in the order of `reads`.
  void apply(std::span<const Bytes> sources, Outputs outputs) const;

  // Takes the source reads[which] into `outputs`, which were zero before the first. In any order,
  // each once; slower than apply(), as the outputs are read and written for each source.
  void add(std::uint32_t which, Bytes source, Outputs outputs) const;

 private:
  struct Tables;
  explicit Combination(std::shared_ptr<const Tables> tables) : tables_(std::move(tables)) {}
  std::shared_ptr<const Tables> tables_;
};

}  // namespace backstay::protect
