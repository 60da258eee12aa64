// Callbacks that are dropped once their owner is gone. One thread.
#pragma once

#include <memory>
#include <utility>

namespace backstay::agent {

// A member of the owner, best the last one.
class CallbackGuard {
 public:
  CallbackGuard() = default;
  CallbackGuard(const CallbackGuard&) = delete;
  CallbackGuard& operator=(const CallbackGuard&) = delete;

  // Calls `callback` as long as the owner is alive; what it has captured lives as long as the
  // wrapper.
  template <typename Callback>
  auto operator()(Callback callback) const {
    return [owner = std::weak_ptr(token_),
            callback = std::move(callback)](auto&&... arguments) mutable {
      if (!owner.expired()) callback(std::forward<decltype(arguments)>(arguments)...);
    };
  }

 private:
  std::shared_ptr<int> token_ = std::make_shared<int>(0);
};

}  // namespace backstay::agent
