// One page that a job's ranks may read and only the agent may write (docs/protocol/agent.md):
// word 0 counts requests to checkpoint, word 1 is 1 once the job shall stop after its next version.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/fd.h"
#include "base/result.h"

namespace backstay::agent {

class ControlPage {
 public:
  static Result<std::unique_ptr<ControlPage>> create();
  ~ControlPage();
  ControlPage(const ControlPage&) = delete;
  ControlPage& operator=(const ControlPage&) = delete;

  int descriptor() const { return fd_.get(); }
  void request_checkpoint(bool stop);
  // A new run of the job begins: no request is open.
  void clear();
  bool stop_requested() const;

 private:
  struct Words {
    std::atomic<std::uint32_t> requests;
    std::atomic<std::uint32_t> stop;
  };
  ControlPage(Fd fd, Words* words) : fd_(std::move(fd)), words_(words) {}
  Fd fd_;
  Words* words_;
};

}  // namespace backstay::agent
