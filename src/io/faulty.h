// Wrappers that let one chosen call of a FileSystem, its files and its rings go wrong.
//
// Every call is counted, in the order in which it is made: opening, reading, writing, syncing,
// renaming, ..., and each request of a ring when it is submitted. A test first runs with no fault
// to learn how many calls there are, then once for each of them.
//
// EINTR and short transfers never come out of a File (file.h), so those two faults play the system
// calls below one: the call still succeeds, in two parts. How the real calls are continued is
// transfer.h's business and tested there.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "io/file.h"
#include "io/ring.h"

namespace backstay::io {

enum class Fault {
  none,
  io,              // EIO, nothing done
  no_space,        // ENOSPC, nothing done
  permission,      // EACCES, nothing done
  interrupted,     // EINTR inside, tried again: succeeds
  short_transfer,  // a read or write is done in two parts: succeeds
  torn,            // a read or write is done half, then EIO; other calls: as io
  stop,            // the machine stops before the call: it and all later ones fail
  stop_midway,     // the machine stops in the middle: a write is half done
  flip,            // one bit of what a read returns is wrong; other calls: as none
};

struct FaultPlan {
  Fault fault = Fault::none;
  std::uint64_t at = 0;  // which call, from 1
};

// Shared by the wrappers of one machine. Any thread.
class Faults {
 public:
  explicit Faults(FaultPlan plan = {}) : plan_(plan) {}

  // Counts a call and says what happens to it.
  Fault next(const std::string& what);

  std::uint64_t calls() const;
  bool stopped() const;
  // "write /job/x": the call that the plan chose, for messages of tests; empty if it never came.
  std::string chosen() const;

 private:
  const FaultPlan plan_;
  mutable std::mutex mutex_;  // guards all below
  std::uint64_t calls_ = 0;
  bool stopped_ = false;
  std::string chosen_;
};

// `inner` must outlive it.
std::unique_ptr<FileSystem> make_faulty_filesystem(FileSystem& inner,
                                                   std::shared_ptr<Faults> faults);

// Takes files of a faulty file system (the calls of `inner` on them are not counted again) and
// plain ones.
std::unique_ptr<Ring> make_faulty_ring(std::unique_ptr<Ring> inner, std::shared_ptr<Faults> faults);

}  // namespace backstay::io
