#include "agent/server/metrics_page.h"

namespace backstay::agent {

Result<std::unique_ptr<MetricsPage>> serve_metrics(const std::string&, std::uint16_t,
                                                   std::function<std::string()>) {
  return Error(Code::unsupported,
               "this build has no libmicrohttpd and so no metrics: install libmicrohttpd-dev and "
               "build again, or set metrics.port to 0");
}

}  // namespace backstay::agent
