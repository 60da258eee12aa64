// A thread that blocks on a disk, so that the main loop never does: its worker handles commands in
// the order in which they were posted, and carries on with what it has begun in between.
//
// A worker is a plain object without a thread, which a test may play step by step:
//   void handle(Command command);
//   // When carry_on() is to be called although no command comes (base/clock.h): 0 is at once,
//   // no_deadline is never.
//   std::uint64_t wakes_ns() const;
//   // Carries on with what is under way; blocks for at least one request to a disk if `wait`.
//   void carry_on(bool wait);
//   // The thread ends: what must not be left half done is done.
//   void finish();
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <variant>

#include "agent/disk/mailbox.h"

namespace backstay::agent {

template <typename Worker, typename Command>
class DiskThread {
 public:
  // `make` is called in the thread, and so is all that it hands to the worker.
  explicit DiskThread(std::function<std::unique_ptr<Worker>()> make)
      : thread_([this, make = std::move(make)] { run(*make()); }) {}
  // Commands that were posted are handled first; then the worker finishes.
  ~DiskThread() {
    commands_.put(std::monostate{});
    thread_.join();
  }
  DiskThread(const DiskThread&) = delete;
  DiskThread& operator=(const DiskThread&) = delete;

  // From any thread.
  void post(Command command) { commands_.put(std::move(command)); }

 private:
  void run(Worker& worker) {
    for (;;) {
      const std::uint64_t wakes_ns = worker.wakes_ns();
      auto next = wakes_ns == 0 ? commands_.take(/*wait=*/false) : commands_.take_until(wakes_ns);
      if (next && std::holds_alternative<std::monostate>(*next)) break;
      if (next) worker.handle(std::get<Command>(std::move(*next)));
      worker.carry_on(/*wait=*/!next);
    }
    worker.finish();
  }

  Mailbox<std::variant<Command, std::monostate>> commands_;  // monostate: end
  std::thread thread_;
};

}  // namespace backstay::agent
