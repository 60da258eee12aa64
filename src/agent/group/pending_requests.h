// Questions to other agents that are not answered yet, each under a ticket that its answer names.
// One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace backstay::agent {

// Question: what its asker keeps until there is an answer.
template <typename Question>
class PendingRequests {
 public:
  explicit PendingRequests(std::uint64_t first_ticket) : next_ticket_(first_ticket) {}

  // The ticket.
  std::uint64_t add(NodeId to, Question question) {
    asked_.emplace(next_ticket_, std::pair(to, std::move(question)));
    return next_ticket_++;
  }
  // The question that `from` answers; none: it was not asked that, or has answered it.
  std::optional<Question> take(NodeId from, std::uint64_t ticket) {
    const auto at = asked_.find(ticket);
    if (at == asked_.end() || at->second.first != from) return std::nullopt;
    std::optional<Question> question = std::move(at->second.second);
    asked_.erase(at);
    return question;
  }
  // All that `from` will not answer any more.
  std::vector<Question> take_all(NodeId from) {
    std::vector<Question> all;
    for (auto& [ticket, asked] : asked_) {
      if (asked.first == from) all.push_back(std::move(asked.second));
    }
    std::erase_if(asked_, [from](const auto& entry) { return entry.second.first == from; });
    return all;
  }
  std::size_t size() const { return asked_.size(); }

 private:
  std::map<std::uint64_t, std::pair<NodeId, Question>> asked_;  // by ticket
  std::uint64_t next_ticket_;
};

}  // namespace backstay::agent
