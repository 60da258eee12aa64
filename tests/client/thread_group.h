// A parallel job whose ranks are threads: the group that a launcher would provide.
#pragma once

#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "client/group.h"

namespace backstay::client::test {

// As std::barrier, of which the thread sanitizer does not see that it orders what threads do.
class Barrier {
 public:
  explicit Barrier(int threads) : threads_(threads) {}

  void arrive_and_wait() {
    std::unique_lock lock(mutex_);
    const unsigned round = round_;
    if (++arrived_ == threads_) {
      arrived_ = 0;
      ++round_;
      all_are_here_.notify_all();
    } else {
      all_are_here_.wait(lock, [&] { return round_ != round; });
    }
  }

 private:
  const int threads_;
  std::mutex mutex_;
  std::condition_variable all_are_here_;
  int arrived_ = 0;
  unsigned round_ = 0;
};

class ThreadGroup {
 public:
  // As many ranks on every node.
  explicit ThreadGroup(int ranks, int nodes = 1)
      : ranks_(ranks), nodes_(nodes), barrier_(ranks), values_(static_cast<std::size_t>(ranks)) {}

  // Runs `body` on every rank at once.
  void run(const std::function<void(const Group&)>& body) {
    std::vector<std::thread> threads;
    std::vector<Member> members(static_cast<std::size_t>(ranks_));
    for (int rank = 0; rank < ranks_; ++rank) {
      auto& member = members[static_cast<std::size_t>(rank)];
      member = {this, rank};
      threads.emplace_back([&body, &member] { body(Group(member.group->describe(member))); });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  struct Member {
    ThreadGroup* group;
    int rank;
  };

  backstay_group describe(Member& member) {
    backstay_group group{};
    group.context = &member;
    group.rank = member.rank;
    group.ranks = ranks_;
    group.local_ranks = ranks_ / nodes_;
    group.local_rank = member.rank % group.local_ranks;
    group.node = member.rank / group.local_ranks;
    group.nodes = nodes_;
    group.broadcast = [](void* context, void* data, std::size_t bytes, int root) {
      auto* me = static_cast<Member*>(context);
      me->group->broadcast(me->rank, data, bytes, root);
      return 0;
    };
    group.minimum = [](void* context, int64_t* value) {
      auto* me = static_cast<Member*>(context);
      me->group->minimum(me->rank, value);
      return 0;
    };
    return group;
  }

  void broadcast(int rank, void* data, std::size_t bytes, int root) {
    if (rank == root) source_ = data;
    barrier_.arrive_and_wait();
    if (rank != root) std::memcpy(data, source_, bytes);
    barrier_.arrive_and_wait();
  }

  void minimum(int rank, int64_t* value) {
    values_[static_cast<std::size_t>(rank)] = *value;
    barrier_.arrive_and_wait();
    for (const int64_t other : values_) *value = std::min(*value, other);
    barrier_.arrive_and_wait();
  }

  const int ranks_;
  const int nodes_;
  Barrier barrier_;
  std::vector<int64_t> values_;
  const void* source_ = nullptr;
};

}  // namespace backstay::client::test
