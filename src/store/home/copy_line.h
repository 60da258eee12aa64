// The line between the two hosts that have captured files and their copies: a question and its
// answer, over two descriptors (docs/protocol/home.md#messages-on-the-line).
//
// One thread. Blocks on the descriptors, at most `patience_s` for each part of a message. Its owner
// ignores SIGPIPE.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace backstay::store {

inline constexpr unsigned copy_line_protocol = 2;
inline constexpr std::uint32_t line_bytes_max = 1 << 30;  // of the data of one message

struct LineMessage {
  nlohmann::json head = nlohmann::json::object();
  Buffer data = {};
};

// Errors are those of the way; what the other end could not do, its answer says (error_of()).
using AskLine = std::function<Result<LineMessage>(const LineMessage&)>;

LineMessage line_question(const char* what, nlohmann::json more = nlohmann::json::object(),
                          Buffer data = {});
LineMessage line_error(const Error& error);
// Ok, or the error that the answer has.
Status error_of(const LineMessage& answer);

class CopyLine {
 public:
  CopyLine(int from, int to, double patience_s) : from_(from), to_(to), patience_s_(patience_s) {}
  // Errors: agent_lost (the other end has gone, or is silent), protocol.
  Result<LineMessage> ask(const LineMessage& question);
  // Answers until the other end goes. Errors: as above; none: it has gone between two questions.
  Status serve(const std::function<LineMessage(const LineMessage&)>& answer);

 private:
  Status send(const LineMessage& message) const;
  Result<LineMessage> receive(bool may_end) const;
  Status read(std::span<std::byte> to) const;
  Status ready(int fd, short what) const;

  const int from_;
  const int to_;
  const double patience_s_;
};

}  // namespace backstay::store
