#include "net/ucx.h"

namespace backstay::net {

Result<std::unique_ptr<BulkLane>> make_ucx(const UcxOptions&) {
  return Error(Code::unsupported,
               "this build has no UCX (it was not found): bulk data goes over TCP");
}

}  // namespace backstay::net
