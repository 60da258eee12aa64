// Random histories of a meeting: members with queues to and from it, delays of any length, ranks
// that fail, leave or vanish, strangers. BACKSTAY_SEED repeats one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <random>

#include "meet/meeting.h"

namespace backstay::meet {
namespace {

// A rank that plays a script known to all: each call is a minimum or a broadcast of some root.
struct Player {
  MemberId id = 0;
  Join join;
  std::deque<Message> to_server;
  std::deque<Message> from_server;
  std::uint64_t call = 0;  // that it is in, or has done
  bool placed = false;
  bool waits = false;
  bool over = false;
  bool gone = false;  // vanished: the server hears of it behind what it has sent
  bool left = false;
  bool told_gone = false;
  std::vector<std::int64_t> results;

  bool lives() const { return !over && !gone && !left; }
};

class History {
 public:
  explicit History(std::uint64_t seed) : random_(seed) {
    ranks_ = 1 + below(40);
    calls_ = 1 + below(12);
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      Player one;
      one.id = 100 + rank;
      one.join = {rank, ranks_, "h" + std::to_string(below(5))};
      one.to_server.push_back(one.join);
      players_.push_back(std::move(one));
    }
    if (below(3) == 0) {  // one that comes twice
      Player twin = players_[below(ranks_)];
      twin.id = 999;
      players_.push_back(std::move(twin));
    }
    faults_ = below(2) == 0 ? 0 : 1 + below(2);
  }

  void play() {
    for (int step = 0; step < 200'000 && !quiet(); ++step) move();
    ASSERT_TRUE(quiet()) << "it does not come to an end";
    check();
  }

 private:
  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(random_() % end); }

  bool is_minimum(std::uint64_t call) const { return (call * 7 + ranks_) % 3 != 0; }
  std::uint32_t root(std::uint64_t call) const {
    return static_cast<std::uint32_t>(call * 13 % ranks_);
  }
  std::int64_t said(std::uint32_t rank, std::uint64_t call) const {
    return static_cast<std::int64_t>((rank * 31 + call * 17) % 101);
  }
  std::int64_t least(std::uint64_t call) const {
    std::int64_t found = 1000;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) found = std::min(found, said(rank, call));
    return found;
  }

  void move() {
    Player& one = players_[below(static_cast<std::uint32_t>(players_.size()))];
    switch (below(4)) {
      case 0: return server_reads(one);
      case 1: return player_reads(one);
      case 2: return acts(one);
      default:
        if (faults_ > 0 && below(400) == 0 && one.lives()) {
          --faults_;
          if (below(2) == 0 && one.placed) {
            one.to_server.push_back(Leave{1 + below(255)});
            one.left = true;
          } else {
            one.gone = true;
          }
          failed_ = true;
        }
    }
  }

  void server_reads(Player& one) {
    if (!one.to_server.empty()) {
      const Message message = one.to_server.front();
      one.to_server.pop_front();
      carry_out(meeting_.on(one.id, message));
    } else if ((one.gone || one.left) && !one.told_gone) {
      one.told_gone = true;
      carry_out(meeting_.gone(one.id));
    }
  }

  void carry_out(const Orders& orders) {
    for (const Order& order : orders) {
      const auto* send = std::get_if<Send>(&order);
      if (send == nullptr) continue;
      for (Player& one : players_)
        if (one.id == send->to) one.from_server.push_back(send->message);
    }
  }

  void player_reads(Player& one) {
    if (one.from_server.empty() || !one.lives()) return;
    const Message message = one.from_server.front();
    if (std::holds_alternative<Data>(message) && !one.waits) return;  // not at that call yet
    one.from_server.pop_front();
    if (std::holds_alternative<Over>(message)) one.over = true;
    if (std::holds_alternative<Placed>(message)) one.placed = true;
    if (const auto* value = std::get_if<Value>(&message)) {
      EXPECT_EQ(value->number, one.call);
      one.results.push_back(value->value);
      one.waits = false;
    }
    if (const auto* data = std::get_if<Data>(&message)) {
      EXPECT_EQ(data->number, one.call);
      one.results.push_back(data->bytes);
      one.waits = false;
    }
  }

  void acts(Player& one) {
    if (!one.lives() || !one.placed || one.waits) return;
    if (one.call == calls_) {
      // As companions do: all meet before they leave.
      one.to_server.push_back(Leave{0});
      one.left = true;
      return;
    }
    const std::uint64_t call = ++one.call;
    const bool last = call == calls_;
    if (last || is_minimum(call)) {
      one.to_server.push_back(Value{call, said(one.join.rank, call)});
      one.waits = true;
    } else if (root(call) == one.join.rank) {
      one.to_server.push_back(data_of(call, Buffer(call)));
      one.results.push_back(static_cast<std::int64_t>(call));
    } else {
      one.waits = true;
    }
  }

  bool quiet() const {
    for (const Player& one : players_) {
      if (!one.to_server.empty()) return false;
      if (one.lives()) return false;
      if (!one.told_gone && !one.over) return false;
    }
    return true;
  }

  void check() const {
    for (const Player& one : players_) {
      for (std::uint64_t call = 1; call <= one.results.size(); ++call) {
        const bool minimum = call == calls_ || is_minimum(call);
        EXPECT_EQ(one.results[call - 1], minimum ? least(call) : static_cast<std::int64_t>(call));
      }
      // One of two with one place is refused; nothing else ends a group without a fault.
      const bool has_twin = players_.size() > ranks_ && one.join.rank == players_.back().join.rank;
      if (!failed_ && !has_twin) {
        EXPECT_EQ(one.results.size(), calls_);
      }
    }
    EXPECT_LE(meeting_.loss().has_value(), failed_);
  }

  std::mt19937_64 random_;
  std::uint32_t ranks_ = 0;
  std::uint64_t calls_ = 0;
  std::uint32_t faults_ = 0;
  bool failed_ = false;
  Meeting meeting_;
  std::vector<Player> players_;
};

TEST(MeetingHistory, NobodyWaitsForEver) {
  const char* given = std::getenv("BACKSTAY_SEED");
  const std::uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  for (std::uint64_t seed = first; seed < first + (given != nullptr ? 1 : 3000); ++seed) {
    SCOPED_TRACE("BACKSTAY_SEED=" + std::to_string(seed));
    History(seed).play();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace backstay::meet
