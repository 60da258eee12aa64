// Where lines for a job's event log go (docs/format/events.md).
#pragma once

#include <string>

namespace backstay::agent {

// Never blocks.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // `line`: JSON without its newline.
  virtual void append(std::string line) = 0;
};

}  // namespace backstay::agent
