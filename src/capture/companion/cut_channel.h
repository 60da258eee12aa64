// The memory that the companion shares with the MPI library of its program
// (capture/lower/channel.h), and waiting for news in it. One for each life of the program.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "capture/lower/channel.h"

namespace backstay::image {

class CutChannel {
 public:
  // All zeros. Errors: io.
  static Result<std::unique_ptr<CutChannel>> make();
  ~CutChannel();
  CutChannel(const CutChannel&) = delete;
  CutChannel& operator=(const CutChannel&) = delete;

  // For `backstay-boot --channel`; good while this object lives.
  std::string path() const;
  lower::Channel& memory() { return *memory_; }

  std::uint32_t told() const { return __atomic_load_n(&memory_->told, __ATOMIC_ACQUIRE); }
  // Sleeps until the library has news beyond `seen`, or the time is over.
  void wait(std::uint32_t seen, std::chrono::microseconds at_most);

 private:
  CutChannel(Fd file, lower::Channel* memory) : file_(std::move(file)), memory_(memory) {}
  Fd file_;
  lower::Channel* memory_;
};

}  // namespace backstay::image
