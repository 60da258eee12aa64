// A table of handlers, one for each type of a variant: std::visit() takes it.
//
//   const MessageTable table{[](const Look& look) { ... }, [](const Seen& seen) { ... }};
//   hand_out(message, table);
//
// A type that is added to the variant without a row does not compile.
#pragma once

#include <type_traits>
#include <variant>

namespace backstay::agent {

template <typename... Handlers>
struct MessageTable : Handlers... {
  using Handlers::operator()...;
};
template <typename... Handlers>
MessageTable(Handlers...) -> MessageTable<Handlers...>;

template <typename Table, typename... Messages>
void hand_out(const std::variant<Messages...>& message, const Table& table) {
  static_assert((std::is_invocable_v<const Table&, const Messages&> && ...),
                "a message type has no handler in the table");
  std::visit(table, message);
}

}  // namespace backstay::agent
