// A tier that refuses for a while, in front of one that outlives it, as a disk outlives the agents.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "tier/tier.h"

namespace backstay::agent::testing {

// Set by the test, read by the store's thread.
struct Warning {
  std::atomic<bool> full = false;  // create() fails: a full disk that is cleaned up later
  std::atomic<std::uint64_t> room_bytes = UINT64_MAX;  // create() of more fails
  std::atomic<bool> room_when_removed = false;         // full until a version is removed
  std::atomic<int> failing_gets = 0;  // so many get() of names with this ending fail, then none
  std::string ending;
  std::atomic<int> failing_opens = 0;  // so many open() fail, then none
  std::function<void(const std::string& name)> before_put;
  static bool fails(std::atomic<int>& left) { return left > 0 && left-- > 0; }
};

class RefusingTier final : public tier::Tier {
 public:
  RefusingTier(std::shared_ptr<tier::Tier> inner, std::shared_ptr<Warning> trouble)
      : inner_(std::move(inner)), trouble_(std::move(trouble)) {}
  Result<std::unique_ptr<tier::Writer>> create(const std::string& name,
                                               std::uint64_t bytes) override {
    if (trouble_->full || bytes > trouble_->room_bytes)
      return Error(Code::no_space, "the disk is full");
    return inner_->create(name, bytes);
  }
  Result<std::unique_ptr<tier::Reader>> open(const std::string& name) override {
    if (Warning::fails(trouble_->failing_opens)) return Error(Code::io, "a passing error");
    return inner_->open(name);
  }
  Status put(const std::string& name, Bytes content) override {
    if (trouble_->before_put) trouble_->before_put(name);
    return inner_->put(name, content);
  }
  Result<Buffer> get(const std::string& name, std::uint64_t bytes_max) override {
    if (name.ends_with(trouble_->ending) && Warning::fails(trouble_->failing_gets)) {
      return Error(Code::io, "a passing error");
    }
    return inner_->get(name, bytes_max);
  }
  Result<std::vector<std::string>> list(const std::string& prefix) override {
    return inner_->list(prefix);
  }
  Status remove(const std::string& name) override {
    const bool there = inner_->list(name).ok() && !inner_->list(name)->empty();
    if (there && trouble_->room_when_removed) trouble_->full = false;
    return inner_->remove(name);
  }
  Status sync(const std::string& prefix) override { return inner_->sync(prefix); }

 private:
  std::shared_ptr<tier::Tier> inner_;
  std::shared_ptr<Warning> trouble_;
};

}  // namespace backstay::agent::testing
