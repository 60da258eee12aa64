// One value of the configuration, checked and put into its slot; for config.cc and
// config_environment.cc.
#pragma once

#include <string>
#include <string_view>

#include "base/config_keys.h"
#include "base/result.h"

namespace backstay {

template <typename... Cases>
struct Overload : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overload(Cases...) -> Overload<Cases...>;

// "text", "number", "boolean" or "integer".
std::string_view type_of(const Slot& slot);
// "" where each value of the type is good.
std::string range_of(const ConfigSlot& key, const Slot& slot);
// Null: there is none.
const ConfigSlot* find_key(std::string_view name);

// `where`: begins the message of an error. Errors: config.
// Into an integer or number slot.
Status put_number(const ConfigSlot& key, const Slot& slot, double value, const std::string& where);
// A relative path counts from `folder`; "~/" is the home directory.
Status put_text(const ConfigSlot& key, std::string* to, const std::string& value,
                const std::string& where, const std::string& folder);

}  // namespace backstay
