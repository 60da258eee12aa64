#include "meet/meeting.h"

#include <fmt/format.h>

#include <algorithm>

namespace backstay::meet {

namespace {

constexpr std::uint32_t ranks_max = 1 << 20;
constexpr std::size_t missing_named_max = 8;

Orders refuse(MemberId member, Code code, std::string why) {
  return {Send{member, Over{code, std::move(why)}}, End{member}};
}

}  // namespace

Orders Meeting::on(MemberId from, const Message& message) {
  const bool joins = std::holds_alternative<Join>(message);
  if (loss_ && joins) return refuse(from, Code::rank_lost, loss_->text());
  if (loss_) return {};  // it has been told
  if (joins == members_.contains(from)) return not_alike(from);
  return std::visit([&](const auto& one) { return take(from, one); }, message);
}

std::string Meeting::why_refused(const Join& join) const {
  if (join.ranks == 0 || join.ranks > ranks_max || join.rank >= join.ranks)
    return fmt::format("rank {} of {} is no place in a job", join.rank, join.ranks);
  if (ranks_ > 0 && join.ranks != ranks_)
    return fmt::format("this rank says that the job has {} ranks, and the others say {}",
                       join.ranks, ranks_);
  const auto taken = by_rank_.find(join.rank);
  if (taken == by_rank_.end()) return "";
  const auto other = members_.find(taken->second);
  return fmt::format(
      "another process{} is rank {} already: does the launcher start the program "
      "behind another launcher, or twice?",
      other == members_.end() ? "" : " on " + other->second.host, join.rank);
}

Orders Meeting::take(MemberId from, const Join& join) {
  if (std::string why = why_refused(join); !why.empty())
    return refuse(from, Code::invalid, std::move(why));
  ranks_ = join.ranks;
  members_[from] = {join.rank, join.host};
  by_rank_[join.rank] = from;
  if (members_.size() < ranks_) return {};
  placed_ = true;
  return place_all();
}

// Nodes in the order of their first ranks.
Orders Meeting::place_all() const {
  struct Node {
    std::uint32_t number = 0;
    std::uint32_t ranks = 0;
  };
  std::map<std::string, Node> nodes;
  std::vector<std::uint32_t> local_ranks;  // by rank
  for (const auto& [rank, id] : by_rank_) {
    const auto [node, fresh] = nodes.try_emplace(members_.at(id).host);
    if (fresh) node->second.number = static_cast<std::uint32_t>(nodes.size() - 1);
    local_ranks.push_back(node->second.ranks++);
  }
  Orders orders;
  for (const auto& [rank, id] : by_rank_) {
    const Node& node = nodes.at(members_.at(id).host);
    orders.push_back(Send{id, Placed{node.number, static_cast<std::uint32_t>(nodes.size()),
                                     local_ranks[rank], node.ranks}});
  }
  return orders;
}

Orders Meeting::take(MemberId from, const Value& value) {
  if (!placed_) return not_alike(from);
  if (left_ > 0)
    return lose({"", "not all ranks take part any more: the program of one has ended"});
  if (!waiting_) waiting_ = Waiting{value.number, value.value, 0};
  if (waiting_->number != value.number) return not_alike(from);
  waiting_->least = std::min(waiting_->least, value.value);
  if (++waiting_->count < members_.size()) return {};
  const Value least{waiting_->number, waiting_->least};
  waiting_.reset();
  Orders orders;
  for (const auto& [id, member] : members_) orders.push_back(Send{id, least});
  return orders;
}

Orders Meeting::take(MemberId from, const Data& data) {
  if (!placed_) return not_alike(from);
  Orders orders;
  for (const auto& [id, member] : members_)
    if (id != from) orders.push_back(Send{id, data});
  return orders;
}

Orders Meeting::take(MemberId from, const Leave& leave) {
  const std::string name = name_of(members_.at(from));
  members_.erase(from);
  ++left_;
  if (leave.code != 0) return lose({name, fmt::format("has ended with exit code {}", leave.code)});
  if (!placed_) return lose({name, "has ended before all had come"});
  if (waiting_) return lose({name, "has ended while others wait for it"});
  return {};
}

Orders Meeting::gone(MemberId member) {
  const auto found = members_.find(member);
  if (found == members_.end()) return {};
  const std::string name = name_of(found->second);
  members_.erase(found);
  return loss_ ? Orders() : lose({name, "is gone"});
}

Orders Meeting::patience_is_over() {
  if (placed_ || loss_) return {};
  std::string missing;
  std::size_t count = 0;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    if (by_rank_.contains(rank)) continue;
    if (++count <= missing_named_max) missing += fmt::format("{}{}", count > 1 ? ", " : "", rank);
  }
  return lose({"", fmt::format("{} of {} ranks have not come: {}{}", count, ranks_, missing,
                               count > missing_named_max ? ", ..." : "")});
}

Orders Meeting::not_alike(MemberId member) {
  const auto found = members_.find(member);
  if (found == members_.end())
    return refuse(member, Code::protocol, "a rank says first which one it is");
  return lose({name_of(found->second),
               "does not call as the others do: a defect of Backstay, please report it"});
}

Orders Meeting::lose(Loss loss) {
  loss_ = std::move(loss);
  waiting_.reset();
  Orders orders;
  for (const auto& [id, member] : members_)
    orders.push_back(Send{id, Over{Code::rank_lost, loss_->text()}});
  return orders;
}

std::string Meeting::name_of(const Member& member) const {
  return fmt::format("rank {} on {}", member.rank, member.host);
}

}  // namespace backstay::meet
