// The members of a plain struct in their order, so that a table of them need not be written again:
// members_of(value) is a tuple of references. For aggregates without bases and arrays.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>

namespace backstay {

// Stands for a value of any type, where only types count.
struct AnyMember {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};

template <typename T, typename... Before>
consteval std::size_t count_members() {
  if constexpr (requires { T{Before{}..., AnyMember{}}; }) {
    return count_members<T, Before..., AnyMember>();
  } else {
    return sizeof...(Before);
  }
}

template <std::size_t count>
constexpr auto tie_members(auto& value) {
// clang-format off
#define MEMBERS(number, ...)                \
  if constexpr (count == (number)) {        \
    auto& [__VA_ARGS__] = value;            \
    return std::tie(__VA_ARGS__);           \
  } else
  MEMBERS(1, a) MEMBERS(2, a, b) MEMBERS(3, a, b, c) MEMBERS(4, a, b, c, d)
  MEMBERS(5, a, b, c, d, e) MEMBERS(6, a, b, c, d, e, f) MEMBERS(7, a, b, c, d, e, f, g)
  MEMBERS(8, a, b, c, d, e, f, g, h) MEMBERS(9, a, b, c, d, e, f, g, h, i)
  MEMBERS(10, a, b, c, d, e, f, g, h, i, j) MEMBERS(11, a, b, c, d, e, f, g, h, i, j, k)
  MEMBERS(12, a, b, c, d, e, f, g, h, i, j, k, l) MEMBERS(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
  MEMBERS(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
  MEMBERS(20, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t)
  MEMBERS(21, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u) {
    static_assert(count == 0, "a struct of so many members: add a line above");
    return std::tuple<>();
  }
#undef MEMBERS
  // clang-format on
}

template <typename T>
constexpr auto members_of(T& value) {
  return tie_members<count_members<std::remove_const_t<T>>()>(value);
}

}  // namespace backstay
