// What the programs of a job have written, summed up until it goes to the event log
// (docs/protocol/collector.md, "Counts"). Any thread.
#pragma once

#include <mutex>

#include "capture/files/counts.h"
#include "wire/message.h"

namespace backstay::files {

class Written {
 public:
  void add(const Counts& counts);
  // A file that was taken.
  void add_captured(std::uint64_t bytes);
  bool any() const;
  // Returns all that was counted since the last call.
  wire::NoteWrites take();

 private:
  mutable std::mutex mutex_;
  bool any_ = false;
  Counts counts_;
  FileCount captured_;
};

}  // namespace backstay::files
