// The collector's socket: a thread for each connection, which carries one question.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>

#include "base/fd.h"
#include "capture/collector/collector.h"
#include "capture/collector/question.h"

namespace backstay::files {

class Server {
 public:
  explicit Server(Collector& collector) : collector_(collector) {}

  // Accepts until no process that ever asked is alive and nothing is pending.
  void serve(int listener);
  // Blocks until the last question is answered.
  void finish();

 private:
  // A connection whose question is being answered.
  using Client = std::shared_ptr<const Fd>;

  void accept(int listener);
  void tick();
  bool is_needed();
  void answer(const Client& client);
  Status sync(int socket, Asked asked, VersionNumber& version);
  Status carry_out(int socket, Asked asked);
  Status settle_all(int socket, bool talks);
  std::uint64_t tell_fates(int socket);
  void ended(const Client& client);

  Collector& collector_;
  bool was_asked_ = false;  // of serve()'s thread
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<Client> clients_;
  std::set<pid_t> asked_;  // processes that may ask again
};

}  // namespace backstay::files
