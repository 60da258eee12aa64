// For a class that is a std::variant with its copying, moving and destruction compiled once:
//
//   class Message : public std::variant<Hello, Begin, End> {
//    public:
//     template <AlternativeOf<variant> T> Message(T&& value) :
//     variant(std::in_place_type<std::remove_cvref_t<T>>, std::forward<T>(value)) {}
//     Message();  // this and the five others that a class has are `= default` in the .cc
//     ...
//
// With a plain std::variant of thirty structs, each file that touches one compiles all of them
// again: this took a third of the time of the whole build. std::visit, std::get_if and
// std::holds_alternative take such a class as it is.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>
#include <variant>

namespace backstay {

template <typename T, typename Variant>
constexpr bool is_alternative_of = false;
template <typename T, typename... Ts>
constexpr bool is_alternative_of<T, std::variant<Ts...>> = (std::same_as<T, Ts> || ...);

template <typename T, typename Variant>
concept AlternativeOf = is_alternative_of<std::remove_cvref_t<T>, Variant>;

template <typename... Ts>
std::type_identity<std::variant<Ts...>> variant_below(const std::variant<Ts...>&);
// The std::variant that T is or is made from: for std::variant_size_v and the like.
template <typename T>
using VariantOf = typename decltype(variant_below(std::declval<const T&>()))::type;

}  // namespace backstay
