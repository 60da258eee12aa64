// What ranks and the meeting's server say to each other (docs/protocol/meeting.md): structs <->
// bytes, no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace backstay::meet {

inline constexpr std::size_t header_bytes = 8;
inline constexpr std::size_t data_bytes_max = 8192;  // of one Data

struct Join {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::string host;
  bool operator==(const Join&) const = default;
};
struct Placed {
  std::uint32_t node = 0;
  std::uint32_t nodes = 0;
  std::uint32_t local_rank = 0;
  std::uint32_t local_ranks = 0;
  bool operator==(const Placed&) const = default;
};
struct Value {
  std::uint64_t number = 0;  // of the call
  std::int64_t value = 0;
  bool operator==(const Value&) const = default;
};
struct Data {
  std::uint64_t number = 0;
  std::uint32_t bytes = 0;  // at most data_bytes_max; that many of `words` count
  std::vector<std::uint64_t> words;
  bool operator==(const Data&) const = default;
};
struct Leave {
  std::uint32_t code = 0;  // the exit code of the rank's program
  bool operator==(const Leave&) const = default;
};
struct Over {
  Code code = Code::rank_lost;
  std::string message;
  bool operator==(const Over&) const = default;
};
// The place in this list is the number on the wire: new ones come last.
using Message = std::variant<Join, Placed, Value, Data, Leave, Over>;

// Precondition: bytes.size() <= data_bytes_max.
Data data_of(std::uint64_t number, Bytes bytes);
// Copies data.bytes of them. Precondition: `to` is as long.
void copy_out(const Data& data, std::span<std::byte> to);

Result<Buffer> encode(const Message& message);
// How many bytes the message has that begins with this header of header_bytes.
// Errors: protocol (too long to be one).
Result<std::size_t> message_bytes(Bytes header);
// Errors: protocol, invalid.
Result<Message> decode(Bytes packet);

}  // namespace backstay::meet
