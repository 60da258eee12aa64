// A hash of a value with everything in it, so that a state that was seen is not explored again.
// Classes of ours say what is in them by fields(), if they are no plain structs.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/members.h"

namespace backstay::cut {

class Digest {
 public:
  template <typename T>
  void add(const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      words_.push_back(static_cast<std::uint64_t>(value));
    } else if constexpr (requires { value.fields(); }) {
      add_all(value.fields());
    } else {
      add_all(members_of(value));
    }
  }
  template <typename T>
  void add(const std::vector<T>& list) {
    add_list(list);
  }
  template <typename T>
  void add(const std::deque<T>& list) {
    add_list(list);
  }
  template <typename K, typename V>
  void add(const std::map<K, V>& map) {
    add(map.size());
    for (const auto& [key, value] : map) {
      add(key);
      add(value);
    }
  }
  template <typename T>
  void add(const std::optional<T>& value) {
    add(value.has_value());
    if (value) add(*value);
  }
  std::uint64_t value() const {
    return XXH3_64bits(words_.data(), words_.size() * sizeof words_[0]);
  }

 private:
  template <typename List>
  void add_list(const List& list) {
    add(list.size());
    for (const auto& one : list) add(one);
  }
  template <typename... T>
  void add_all(const std::tuple<T...>& fields) {
    std::apply([this](const auto&... field) { (add(field), ...); }, fields);
  }

  std::vector<std::uint64_t> words_;
};

template <typename T>
std::uint64_t digest_of(const T& value) {
  Digest digest;
  digest.add(value);
  return digest.value();
}

}  // namespace backstay::cut
