#include "capture/companion/company.h"

#include <poll.h>

#include <cstdlib>

#include "base/clock.h"
#include "base/machine.h"
#include "meet/server.h"

namespace backstay::image {

Status Company::meet(const std::optional<meet::Launcher>& launcher) {
  if (!launcher) return {};
  const meet::Variables variables = [](const char* name) -> const char* {
    return std::getenv(name);
  };
  BACKSTAY_ASSIGN(const meet::Place place, meet::place_by(*launcher, variables));
  BACKSTAY_ASSIGN(member_, meet::Member::join(variables, place, host_name()));
  ::unsetenv(meet::addresses_variable);
  ::unsetenv(meet::secret_variable);
  group_ = client::Group(member_->group());
  return {};
}

bool Company::is_over() {
  if (!member_) return false;
  member_->look();
  return !member_->over().empty();
}

void Company::wait_for_first() {
  constexpr double patience_s = 1;
  constexpr int look_every_ms = 5;
  const std::uint64_t deadline = deadline_in(patience_s);
  while (member_ && !is_over() && system_clock().monotonic_ns() < deadline) {
    ::poll(nullptr, 0, look_every_ms);
  }
}

Error Company::cause(const Error& why) {
  return is_over() ? Error(Code::rank_lost, member_->over()) : why;
}

void Company::leave(int code) {
  if (member_) member_->leave(code);
}

}  // namespace backstay::image
