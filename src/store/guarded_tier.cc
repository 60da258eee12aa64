#include "store/guarded_tier.h"

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "base/folders.h"

namespace backstay::store {

namespace {

class GuardedTier final : public tier::Tier {
 public:
  GuardedTier(std::unique_ptr<tier::Tier> tier, HeldLock lock)
      : tier_(std::move(tier)), lock_(std::move(lock)) {}

  Result<std::unique_ptr<tier::Writer>> create(const std::string& name,
                                               std::uint64_t bytes) override {
    BACKSTAY_TRY(lock_->check());
    note(name);
    return tier_->create(name, bytes);
  }
  Result<std::unique_ptr<tier::Reader>> open(const std::string& name) override {
    return tier_->open(name);
  }
  Status put(const std::string& name, Bytes content) override {
    BACKSTAY_TRY(lock_->check());
    BACKSTAY_TRY(check_folder_of(name));
    return tier_->put(name, content);
  }
  Result<Buffer> get(const std::string& name, std::uint64_t bytes_max) override {
    return tier_->get(name, bytes_max);
  }
  Result<std::vector<std::string>> list(const std::string& prefix) override {
    return tier_->list(prefix);
  }
  Status remove(const std::string& name) override {
    BACKSTAY_TRY(lock_->check());
    forget(name);
    return tier_->remove(name);
  }
  Status remove_if_empty(const std::string& prefix) override {
    BACKSTAY_TRY(lock_->check());
    return tier_->remove_if_empty(prefix);
  }
  Status sync(const std::string& prefix) override { return tier_->sync(prefix); }
  Status prepare() override { return tier_->prepare(); }

 private:
  void note(const std::string& name) {
    const unsigned lost = lock_->folders_lost();
    const std::lock_guard guard(mutex_);
    created_[parent_of(name)] = lost;
  }
  void forget(const std::string& folder) {
    const std::lock_guard guard(mutex_);
    created_.erase(folder);
  }
  Status check_folder_of(const std::string& name) {
    const unsigned lost = lock_->folders_lost();
    const std::lock_guard guard(mutex_);
    const auto created = created_.find(parent_of(name));
    if (created == created_.end() || created->second == lost) return {};
    return Error(Code::io,
                 "the job's folder was removed or moved while " + created->first + " was written");
  }

  const std::unique_ptr<tier::Tier> tier_;
  const HeldLock lock_;
  std::mutex mutex_;
  std::map<std::string, unsigned> created_;  // folders with something created: folders_lost() then
};

}  // namespace

std::unique_ptr<tier::Tier> guarded(std::unique_ptr<tier::Tier> tier, const HeldLock& lock) {
  if (lock == nullptr) return tier;
  return std::make_unique<GuardedTier>(std::move(tier), lock);
}

}  // namespace backstay::store
