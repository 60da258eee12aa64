#include "io/uring.h"

namespace backstay::io {

Result<std::unique_ptr<Ring>> make_uring(const RingOptions&, RingKind*) {
  return Error(Code::unsupported, "this build has no io_uring (liburing was not found)");
}

}  // namespace backstay::io
