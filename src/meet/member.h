// A rank's side of a meeting: it joins, is a group with the others, and leaves
// (docs/protocol/meeting.md). One thread; every function blocks until the others are there too.
#pragma once

#include <memory>
#include <string>

#include "backstay/backstay.h"
#include "base/result.h"
#include "meet/link.h"
#include "meet/place.h"

namespace backstay::meet {

class Member {
 public:
  // Where, and the secret: BACKSTAY_MEETING and BACKSTAY_MEETING_SECRET. `host` is this host's
  // name. Returns when all ranks have come.
  // Errors: invalid (a variable is missing or malformed; another process has this place),
  // agent_lost and permission (no address leads to the server; says why of the last),
  // rank_lost (ranks have not come, or have gone).
  static Result<std::unique_ptr<Member>> join(const Variables& variables, const Place& place,
                                              const std::string& host);

  // Its functions fail at once, for good, when the group is over. Lives as long as this.
  backstay_group group();
  // Why the group is over; "": it is not, as far as this rank has heard.
  const std::string& over() const { return over_; }
  // It ended because the server did.
  bool without_server() const { return without_server_; }
  // Looks whether word of the end has come; does not block.
  void look();

  // Says goodbye, with the exit code of this rank's program.
  void leave(int code);

 private:
  explicit Member(Fd socket) : link_(std::move(socket)) {}
  Status tell(const Message& message);
  Result<Message> hear();
  Status end_of(const Error& error);
  Status broadcast(std::span<std::byte> data, bool mine);
  Status minimum(std::int64_t& value);

  Link link_;
  Place place_;
  Placed placed_;
  std::uint64_t calls_ = 0;
  std::vector<Message> heard_;  // and not looked at yet
  std::string over_;
  bool without_server_ = false;
};

}  // namespace backstay::meet
