#include "base/parity_shape.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

namespace backstay {

Status check_shape(ParityShape shape) {
  if (shape.data >= 1 && shape.parity >= 1 && shape.parity <= parity_max &&
      shape.data <= shape_members_max && shape.members() <= shape_members_max) {
    return {};
  }
  return Error(Code::invalid,
               fmt::format("parity ({}, {}): there must be at least 1 data block, 1 to {} "
                           "parity blocks, and at most {} together",
                           shape.data, shape.parity, parity_max, shape_members_max));
}

Result<ParityShape> parse_parity(const std::string& text) {
  ParityShape shape;
  const char* end = text.data() + text.size();
  const auto data = std::from_chars(text.data(), end, shape.data);
  const bool comma = data.ec == std::errc{} && data.ptr != end && *data.ptr == ',';
  const auto parity =
      comma ? std::from_chars(data.ptr + 1, end, shape.parity) : std::from_chars_result{end, {}};
  if (!comma || parity.ec != std::errc{} || parity.ptr != end) {
    return Error(Code::config,
                 fmt::format("protect.parity is \"{}\"; it must be two numbers with a comma "
                             "between, such as \"3,1\"",
                             text));
  }
  if (const Status good = check_shape(shape); !good.ok()) {
    return Error(Code::config, "protect.parity: " + good.error().message());
  }
  return shape;
}

}  // namespace backstay
