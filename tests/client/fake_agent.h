// An agent for tests of the client: speaks the protocol, keeps objects in memory, and misbehaves on
// demand.
//
// Strict where the real one is: buffers full, in order, owned, checksums right; the first violation
// is kept in problem(). One thread of its own; settings are made before start() or from the hook.
#pragma once

#include <poll.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "message_names.h"
#include "wire/message.h"

namespace backstay::client::test {

class FakeAgent {
 public:
  // reborn: every connection ends and a new agent, which has what is stored, listens already.
  // cut_off: this rank's connection is ended with a failure.
  enum class Action { go_on, die, reborn, drop_rank, cut_off, ignore };

  struct Options {
    std::uint32_t buffer_bytes = 256;
    std::uint32_t buffers = 16;
    // Sees each message of a rank before it is obeyed; runs in the agent's thread.
    std::function<Action(const wire::Message&)> hook;
    // The order of the chunks of a restart: none on which a client might rely.
    bool reverse_chunks = true;
    bool never_hold = false;
    // Flips one byte of these versions' first chunks whenever they are handed out.
    std::set<VersionNumber> damage;
    // The same, but only when chunks come a second time.
    std::set<VersionNumber> damage_late;
    // Why ranks get no object that is not here.
    Code lacking = Code::not_found;
    // Answers hello with this.
    Code refuse_hello = Code::ok;
    std::uint32_t control_requests = 0;
    std::vector<wire::Setting> settings;  // that it says it was started with
  };

  FakeAgent(std::string path, Options options);
  ~FakeAgent();

  // The agent obeys what ranks sent before the call; then its thread ends.
  void stop();
  // The agent's thread has ended, by itself or by stop().
  bool dead() const { return dead_; }
  // Its thread, which lives, does nothing but wait as long as this is held: for who forks. A child
  // has a copy of the locks of a thread that it does not have, and the address sanitizer's
  // allocator (clang 14) does not free its own in it.
  std::unique_lock<std::mutex> standstill();

  // Safe to use once the client waits for nothing, or after stop().
  std::map<VersionNumber, std::map<Rank, Buffer>> objects;
  std::map<VersionNumber, RunId> runs;                 // that saved the versions; default: 1
  std::map<VersionNumber, std::uint32_t> saved_ranks;  // default: as many as there are objects
  std::map<VersionNumber, std::string> set_aside;      // known to be damaged, and why
  std::set<VersionNumber> hide;  // are here, and not offered for a restart over several nodes
  std::function<void(const wire::Restart&)> on_restart;
  std::map<VersionNumber, Level> levels;  // default: local for stored versions
  std::map<VersionNumber, Code> failed;   // why it gets no higher level
  std::atomic<bool> may_be_base{false};   // what is brought back
  std::atomic<bool> fail_waits{false};    // who waits for a level is answered at once
  std::atomic<Code> end_with{
      Code::ok};  // so end captures, restarts and fetches, as one that is not able to
  std::vector<std::string> log;       // names of messages as they came
  std::size_t chunks_sent = 0;        // of restores and fetches
  std::size_t chunks_stored() const;  // of all objects; for hooks
  std::string problem() const;
  std::vector<wire::Neighbour> neighbours;  // from its first rank; read after stop()
  int requests_seen() const { return requests_seen_; }
  void request_checkpoint(bool stop);

 private:
  struct Link {
    Fd socket;
    wire::Hello hello;
    bool welcome = false;  // and its rank has no newer link
  };
  struct Filling {
    std::uint64_t bytes = 0;
    Buffer object;
    std::set<std::uint32_t> granted;
    bool ended = false;
  };
  struct Returning {
    const Buffer* object = nullptr;
    std::deque<std::uint64_t> to_send;           // offsets
    std::map<std::uint32_t, std::uint64_t> out;  // buffer, and the offset of what is in it
    std::set<std::uint64_t> placed;
    std::size_t chunks = 0;  // of the range that was asked for
    std::uint64_t verified = 0;
    bool proceeds = false;
    bool restored = false;
  };

  void loop();
  void accept();
  Action hear(int fd);  // returns what is to become of the agent
  void wait_for_any(std::vector<pollfd>& descriptors);
  void forget_all();
  void obey(Link& link, const wire::Message& message);
  void welcome(Link& link);
  void begin(Link& link, const wire::Begin& begin);
  void filled(Link& link, const wire::Filled& filled);
  void end(Link& link, const wire::End& end);
  void grant();
  void next_fetch();
  void restart(const std::set<Rank>& ranks, const wire::Fetch& what);
  std::deque<std::uint64_t> offsets_of(const Buffer& object) const;
  void plan();
  void send_chunks();
  void verified(Link& link, const wire::Verified& verified);
  void proceed(Link& link, const wire::Proceed& proceed);
  void deliver();
  wire::Candidate newest_below(const wire::Candidates& asked);
  void restored(Link& link, const wire::Restored& restored);
  void withdraw(std::function<void()> next);
  void withdrawn(Rank rank);
  void finish_restore(Code code, const std::string& message);
  void heard(Rank rank, const wire::Abandon& abandon);
  void give_up(Rank by, Code code, const std::string& why);
  void tell_level(Link& link, VersionNumber version);
  void lost(const Link& link);
  Link* link_of(Rank rank);
  void send(Link& link, const wire::Message& message, const std::vector<int>& fds = {});
  void complain(const std::string& what);
  std::byte* buffer(std::uint32_t index) {
    return pool_ + std::size_t{index} * options_.buffer_bytes;
  }
  std::size_t chunks_of(std::uint64_t bytes) const {
    return (bytes + options_.buffer_bytes - 1) / options_.buffer_bytes;
  }

  const std::string path_;
  Options options_;
  Fd listener_;
  Fd wake_;
  Fd pool_fd_;
  Fd control_fd_;
  std::byte* pool_ = nullptr;
  std::uint32_t* control_ = nullptr;
  std::vector<std::uint32_t> free_;
  std::map<int, Link> links_;
  VersionNumber filling_version_ = 0;
  VersionNumber given_up_ = 0;  // as a rank was lost
  std::map<Rank, Filling> filling_;
  std::map<Rank, std::vector<std::uint32_t>> unanswered_;  // of a version that was given up
  std::set<Rank> restarting_;
  VersionNumber returning_version_ = 0;
  bool held_ = false;
  bool delivering_ = false;
  bool several_nodes_ = false;
  std::map<Rank, Returning> returning_;
  std::set<VersionNumber> damaged_;
  wire::Fetch what_;
  std::deque<std::pair<Rank, wire::Fetch>> fetches_;  // that wait
  bool fetching_ = false;
  std::set<Rank> withdrawing_;
  std::function<void()> after_withdrawal_;
  std::atomic<bool> dead_{false};
  std::atomic<int> requests_seen_{0};
  std::mutex moving_;  // the thread has it but while it waits
  std::condition_variable waits_;
  bool waiting_ = false;
  mutable std::mutex mutex_;
  std::string problem_;
  std::thread thread_;
};

// fork() while none of the agents does anything.
pid_t fork_beside(const std::vector<FakeAgent*>& agents);

}  // namespace backstay::client::test
