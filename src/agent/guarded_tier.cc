#include "agent/guarded_tier.h"

#include <utility>

namespace backstay::agent {

namespace {

class GuardedTier final : public tier::Tier {
 public:
  GuardedTier(std::unique_ptr<tier::Tier> tier, std::function<Status()> check)
      : tier_(std::move(tier)), check_(std::move(check)) {}

  Result<std::unique_ptr<tier::Writer>> create(const std::string& name,
                                               std::uint64_t bytes) override {
    BACKSTAY_TRY(check_());
    return tier_->create(name, bytes);
  }
  Result<std::unique_ptr<tier::Reader>> open(const std::string& name) override {
    return tier_->open(name);
  }
  Status put(const std::string& name, Bytes content) override {
    BACKSTAY_TRY(check_());
    return tier_->put(name, content);
  }
  Result<Buffer> get(const std::string& name, std::uint64_t bytes_max) override {
    return tier_->get(name, bytes_max);
  }
  Result<std::vector<std::string>> list(const std::string& prefix) override {
    return tier_->list(prefix);
  }
  Status remove(const std::string& name) override {
    BACKSTAY_TRY(check_());
    return tier_->remove(name);
  }
  Status remove_if_empty(const std::string& prefix) override {
    BACKSTAY_TRY(check_());
    return tier_->remove_if_empty(prefix);
  }
  Status sync(const std::string& prefix) override { return tier_->sync(prefix); }
  Status prepare() override { return tier_->prepare(); }

 private:
  const std::unique_ptr<tier::Tier> tier_;
  const std::function<Status()> check_;
};

}  // namespace

std::unique_ptr<tier::Tier> guard(std::unique_ptr<tier::Tier> tier, std::function<Status()> check) {
  return std::make_unique<GuardedTier>(std::move(tier), std::move(check));
}

std::unique_ptr<tier::Tier> guarded(std::unique_ptr<tier::Tier> tier, const HeldLock& lock) {
  if (lock == nullptr) return tier;
  return guard(std::move(tier), [lock] { return lock->check(); });
}

}  // namespace backstay::agent
