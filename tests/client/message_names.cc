#include "message_names.h"

#include <array>
#include <variant>

namespace backstay::client::test {

const char* name_of(const wire::Message& message) {
  static constexpr std::array names = {
      "hello",      "begin",     "filled",    "end",         "query",       "await",
      "restart",    "verified",  "refuse",    "restored",    "fetch",       "request",
      "goodbye",    "admin",     "status",    "shutdown",    "welcome",     "grant",
      "captured",   "level",     "plan",      "chunks",      "deliver",     "answer",
      "failure",    "withdraw",  "withdrawn", "forget",      "await_newer", "neighbours",
      "candidates", "candidate", "ready",     "proceed",     "where",       "end_ranks",
      "join",       "open",      "opened",    "more",        "finish",      "abandon",
      "bring_home", "at_home",   "move_home", "moved_home",  "ask_cut",     "cut_report",
      "refuse_cut", "cut_order", "cut_over",  "note_writes", "kept",        "copied"};
  static_assert(names.size() == std::variant_size_v<wire::Message::variant>);
  return names.at(message.index());
}

}  // namespace backstay::client::test
