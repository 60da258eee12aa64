// The companions of a job among themselves: alone, or met by their launcher's variables
// (docs/protocol/meeting.md). One thread; functions of the group block until all have called them.
#pragma once

#include <memory>
#include <optional>

#include "client/group.h"
#include "meet/member.h"

namespace backstay::image {

class Company {
 public:
  // Without a launcher this process is all of it, and stays so. Else meets the others, and takes
  // what leads to the meeting out of the environment, so that the program does not get it.
  // Errors: as meet::place_by() and meet::Member::join().
  Status meet(const std::optional<meet::Launcher>& launcher);

  const client::Group& group() const { return group_; }
  bool is_first() const { return group_.rank() == 0; }
  bool several() const { return group_.ranks() > 1; }
  // Whether the others are lost, as far as is known here; does not block.
  bool is_over();
  // Until the first rank has left, or another was lost; a second at most.
  void wait_for_first();
  // `why`, or what has ended the company in its place.
  Error cause(const Error& why);
  bool lost_run() const { return member_ && member_->without_server(); }
  // The program has ended with this exit code; 0 also where it was saved and ended.
  void leave(int code);

 private:
  client::Group group_;
  std::unique_ptr<meet::Member> member_;
};

}  // namespace backstay::image
