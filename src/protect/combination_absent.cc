#include "base/check.h"
#include "protect/combination.h"

namespace backstay::protect {

struct Combination::Tables {};

Result<Combination> Combination::make(ParityShape, Indexes, Indexes) {
  return Error(Code::unsupported,
               "this build has no parity (ISA-L was not found when it was built): use replicas, or "
               "build again with libisal-dev installed");
}

// Never called: make() gives no Combination.
void Combination::apply(std::span<const Bytes>, Outputs) const {
  BACKSTAY_CHECK(tables_ != nullptr);
}
void Combination::add(std::uint32_t, Bytes, Outputs) const { BACKSTAY_CHECK(tables_ != nullptr); }

}  // namespace backstay::protect
