#include "bin/run/host_choice.h"

#include <fmt/format.h>

#include <iterator>

namespace backstay::bin {

Result<HostChoice> HostChoice::make(std::vector<Host> hosts, unsigned spares) {
  if (spares >= hosts.size())
    return Error(Code::invalid,
                 fmt::format("--spares {} leaves none of the {} hosts to run on ({})", spares,
                             hosts.size(), names_text(hosts)));
  HostChoice choice;
  const auto first_spare = hosts.end() - static_cast<std::ptrdiff_t>(spares);
  choice.spares_.assign(std::make_move_iterator(first_spare), std::make_move_iterator(hosts.end()));
  hosts.erase(first_spare, hosts.end());
  choice.in_use_ = std::move(hosts);
  return choice;
}

HostChoice::Change HostChoice::lose(const std::set<std::string>& gone, unsigned ranks) {
  Change change;
  std::erase_if(spares_, [&](const Host& host) { return gone.contains(host.name); });
  const auto take = [&] {
    Host spare = std::move(spares_.front());
    spares_.erase(spares_.begin());
    change.taken.push_back(spare.name);
    return spare;
  };
  std::vector<Host> left;
  for (Host& host : in_use_) {
    if (!gone.contains(host.name)) {
      left.push_back(std::move(host));
      continue;
    }
    change.lost.push_back(host.name);
    if (!spares_.empty()) left.push_back(take());
  }
  in_use_ = std::move(left);
  while (!spares_.empty() && !enough_for(ranks)) in_use_.push_back(take());
  return change;
}

bool HostChoice::enough_for(unsigned ranks) const {
  if (in_use_.empty()) return false;
  const unsigned slots = slots_of(in_use_);
  return slots == 0 || slots >= ranks;
}

}  // namespace backstay::bin
