// What the programs of a job have written, summed up until it goes to the event log
// (docs/protocol/collector.md, "Counts"). Any thread.
#pragma once

#include <mutex>
#include <string>

#include "capture/files/counts.h"
#include "wire/message.h"

namespace backstay::files {

class Written {
 public:
  void add(Counts counts);
  // A file that was taken.
  void add_captured(std::uint64_t bytes);
  bool any() const;
  // Returns all that was counted since the last call.
  wire::NoteWrites take();
  // The fates of files that fit a pattern, since the last call.
  struct Fates {
    std::uint64_t captured = 0;
    std::string words;  // of these; else why the others were not, "": there were none
  };
  Fates take_fates();

 private:
  mutable std::mutex mutex_;
  bool any_ = false;
  Counts counts_;
  FileCount captured_;
  Counts all_;  // since the last take_fates()
  FileCount all_captured_;
};

}  // namespace backstay::files
