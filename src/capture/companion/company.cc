#include "capture/companion/company.h"

#include <cstdlib>

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

Error Company::cause(const Error& why) {
  return is_over() ? Error(Code::rank_lost, member_->over()) : why;
}

void Company::leave(int code) {
  if (member_) member_->leave(code);
}

}  // namespace backstay::image
