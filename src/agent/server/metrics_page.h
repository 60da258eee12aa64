// A page over HTTP, for collectors of metrics: GET /metrics and nothing else.
//
// libmicrohttpd does the protocol; there is no thread: the main loop watches one descriptor and
// calls progress(). Bounded: 16 connections, each at most 10 s idle. A build without the library
// has metrics_page_absent.cc instead.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace backstay::agent {

class MetricsPage {
 public:
  virtual ~MetricsPage() = default;
  // Readable when progress() has something to do.
  virtual int descriptor() const = 0;
  // When progress() is wanted although nothing is readable (base/clock.h).
  virtual std::uint64_t wants_ns() const = 0;
  virtual void progress() = 0;
};

// Listens when it returns. `text` is called in progress(). Errors: config (no such address),
// port_in_use, permission, io, unsupported (this build has no libmicrohttpd).
Result<std::unique_ptr<MetricsPage>> serve_metrics(const std::string& address, std::uint16_t port,
                                                   std::function<std::string()> text);

}  // namespace backstay::agent
