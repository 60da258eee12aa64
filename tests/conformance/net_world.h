// Some ends of a network in one thread, and all that they have seen.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "base/clock.h"
#include "net/transport.h"

namespace backstay::testing {

struct NetUnderTest {
  std::shared_ptr<void> network;  // lives longer than the ends
  std::vector<std::unique_ptr<net::Transport>> ends;
  std::function<void()> pass_time;  // moves the ends' clock a little; empty: it is the machine's
  bool is_ucx = false;
};

class NetWorld {
 public:
  explicit NetWorld(NetUnderTest under) : under_(std::move(under)), seen_(under_.ends.size()) {}
  // UCX before 1.14 ends the process where a worker is destroyed while it still answers a
  // connection of another one (openucx/ucx#8175), and one end can make no progress while another
  // one is being destroyed.
  ~NetWorld() {
    stalled_.clear();
    const std::uint64_t deadline = deadline_in(2);
    while (under_.is_ucx && system_clock().monotonic_ns() < deadline && wait()) step();
  }
  NetWorld(NetWorld&&) = default;

  net::Transport& operator[](std::size_t end) { return *under_.ends[end]; }
  std::size_t size() const { return under_.ends.size(); }
  // The end makes no progress from now on, or does again.
  void stall(std::size_t end) { stalled_.insert(end); }
  void resume(std::size_t end) { stalled_.erase(end); }
  void destroy(std::size_t end) { under_.ends[end].reset(); }

  // Everybody makes progress once; waits a moment if nothing happened.
  void step() {
    bool something = false;
    for (std::size_t i = 0; i < size(); ++i) {
      if (!under_.ends[i] || stalled_.contains(i)) continue;
      for (auto& event : under_.ends[i]->progress()) {
        something = true;
        seen_[i].push_back(std::move(event));
      }
    }
    if (something) return;
    if (under_.pass_time) return under_.pass_time();
    (void)wait();
  }

  ::testing::AssertionResult until(const std::function<bool()>& condition) {
    const std::uint64_t deadline = deadline_in(30);
    while (!condition()) {
      if (system_clock().monotonic_ns() > deadline)
        return ::testing::AssertionFailure() << "did not happen in 30 s";
      step();
    }
    return ::testing::AssertionSuccess();
  }

  // All events of a kind that an end has seen of a peer (0: of any).
  template <typename T>
  std::vector<const T*> of(std::size_t end, net::PeerId peer = 0) const {
    std::vector<const T*> found;
    for (const auto& event : seen_[end]) {
      const T* one = std::get_if<T>(&event);
      if (one && (peer == 0 || one->peer == peer)) found.push_back(one);
    }
    return found;
  }
  template <typename T>
  std::size_t count(std::size_t end, net::PeerId peer = 0) const {
    return of<T>(end, peer).size();
  }
  const std::vector<net::Event>& seen(std::size_t end) const { return seen_[end]; }

  // Connects two ends that are not connected yet: what each calls the connection.
  std::pair<net::PeerId, net::PeerId> join(std::size_t from, std::size_t to) {
    const std::size_t before = count<net::Connected>(to);
    const net::PeerId ours = under_.ends[from]->connect(under_.ends[to]->facts().address);
    EXPECT_TRUE(until([&] {
      return count<net::Connected>(from, ours) == 1 && count<net::Connected>(to) == before + 1;
    }));
    const auto all = of<net::Connected>(to);
    return {ours, all.empty() ? 0 : all.back()->peer};
  }

  // How often owners that only poll are woken in a second of silence: by timers and pings.
  int wakeups_in_a_second() {
    const std::uint64_t end = deadline_in(1);
    int wakeups = 0;
    while (system_clock().monotonic_ns() < end) {
      std::vector<pollfd> all;
      for (const auto& one : under_.ends) all.push_back({one->facts().descriptor, POLLIN, 0});
      EXPECT_GE(::poll(all.data(), all.size(), milliseconds_until(end)), 0);
      for (std::size_t i = 0; i < size(); ++i) {
        if (all[i].revents == 0) continue;
        ++wakeups;
        EXPECT_TRUE(under_.ends[i]->progress().empty());
      }
    }
    return wakeups;
  }

 private:
  // Until something is readable, 20 ms at most; false: nothing was.
  bool wait() {
    std::vector<pollfd> polled;
    for (std::size_t i = 0; i < size(); ++i) {
      if (under_.ends[i] && !stalled_.contains(i))
        polled.push_back({under_.ends[i]->facts().descriptor, POLLIN, 0});
    }
    return ::poll(polled.data(), polled.size(), 20) > 0;
  }

  NetUnderTest under_;
  std::set<std::size_t> stalled_;
  std::vector<std::vector<net::Event>> seen_;
};

}  // namespace backstay::testing
