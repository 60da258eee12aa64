// The server's part of a meeting as a state machine: what ranks say in, orders out
// (docs/protocol/meeting.md). No I/O, no clock, one thread.
//
// A member is one connection that has proved that it knows the secret. Its owner hands each message
// to on(), its end to gone(), and carries out the orders in their sequence.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "meet/message.h"

namespace backstay::meet {

using MemberId = std::uint64_t;

struct Send {
  MemberId to = 0;
  Message message;
};
// Ends the connection when all that was sent before is on its way. gone() need not follow.
struct End {
  MemberId member = 0;
};
using Order = std::variant<Send, End>;
using Orders = std::vector<Order>;

// Why the ranks are no group any more.
struct Loss {
  std::string rank;  // "rank 3 on host b"; "": of none alone
  std::string why;   // a sentence's end: "is gone", "has ended with exit code 9"
  std::string text() const { return rank.empty() ? why : rank + " " + why; }
};

class Meeting {
 public:
  Orders on(MemberId from, const Message& message);
  Orders gone(MemberId member);
  // Those who have not come by now do not come any more.
  Orders patience_is_over();

  // Some ranks have come, and others have not yet.
  bool gathers() const { return ranks_ > 0 && !placed_ && !loss_; }
  // The first one; it stays.
  const std::optional<Loss>& loss() const { return loss_; }

 private:
  struct Member {
    std::uint32_t rank = 0;
    std::string host;
  };
  struct Waiting {
    std::uint64_t number = 0;
    std::int64_t least = 0;
    std::size_t count = 0;  // of those who have said theirs
  };

  Orders take(MemberId from, const Join& join);
  Orders take(MemberId from, const Value& value);
  Orders take(MemberId from, const Data& data);
  Orders take(MemberId from, const Leave& leave);
  // What ranks do not say.
  Orders take(MemberId from, const Placed&) { return not_alike(from); }
  Orders take(MemberId from, const Over&) { return not_alike(from); }

  std::string why_refused(const Join& join) const;
  Orders place_all() const;
  Orders not_alike(MemberId member);
  Orders lose(Loss loss);
  std::string name_of(const Member& member) const;

  std::uint32_t ranks_ = 0;  // 0: nobody has come yet
  std::map<MemberId, Member> members_;
  std::map<std::uint32_t, MemberId> by_rank_;  // also of those who have left
  std::size_t left_ = 0;
  bool placed_ = false;
  std::optional<Waiting> waiting_;
  std::optional<Loss> loss_;
};

}  // namespace backstay::meet
