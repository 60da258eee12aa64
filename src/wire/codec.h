// Structs <-> packets, for every protocol of ours: the members of a message in their order. A text
// is u16 + bytes, a list u32 + entries, a bool u8 (0 or 1), Level u8, Code i32, a struct its
// members.
//
// For the .cc files of protocols only.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/alternative.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "base/members.h"
#include "base/result.h"
#include "wire/limits.h"

namespace backstay::wire::codec {

inline constexpr std::size_t header_bytes = 2 + 2 + 4;

class Encoder {
 public:
  template <typename T>
  void fields(const T& value) {
    std::apply([&](const auto&... member) { (put(member), ...); }, members_of(value));
  }

  Result<Buffer> finish(std::uint16_t type, std::uint16_t protocol) {
    if (error_.has_value()) return *error_;
    if (body_.size() + header_bytes > message_bytes_max) {
      return Error(Code::too_large, "a message of " + std::to_string(body_.size()) +
                                        " bytes does not fit into one packet of 64 KiB");
    }
    ByteWriter packet;
    packet.put(type);
    packet.put(protocol);
    packet.put(static_cast<std::uint32_t>(body_.size()));
    packet.put_bytes(body_.view());
    return packet.take();
  }

 private:
  void put(bool value) { body_.put(static_cast<std::uint8_t>(value)); }
  void put(Level value) { body_.put(static_cast<std::uint8_t>(value)); }
  void put(Code value) { body_.put(static_cast<std::int32_t>(value)); }
  template <std::integral T>
  void put(T value) {
    body_.put(value);
  }
  template <typename T>
    requires std::is_class_v<T>
  void put(const T& entry) { fields(entry); }
  void put(const std::string& text) {
    if (text.size() > std::numeric_limits<std::uint16_t>::max()) {
      error_ = Error(Code::too_large, "a text of " + std::to_string(text.size()) +
                                          " bytes does not fit into a message");
      return;
    }
    if (text.find('\0') != std::string::npos) {
      error_ = Error(Code::invalid, "a text of a message holds a zero byte");
    }
    body_.put_text(text);
  }
  template <typename T>
  void put(const std::vector<T>& list) {
    if (list.size() > list_entries_max) {
      error_ = Error(Code::too_large, "a list of " + std::to_string(list.size()) +
                                          " entries does not fit into a message");
      return;
    }
    body_.put(static_cast<std::uint32_t>(list.size()));
    for (const T& entry : list) put(entry);
  }

  ByteWriter body_;
  std::optional<Error> error_;
};

class Decoder {
 public:
  explicit Decoder(Bytes body) : body_(body) {}

  template <typename T>
  void fields(T& value) {
    std::apply([&](auto&... member) { (get(member), ...); }, members_of(value));
  }
  bool done() const { return valid_ && body_.done(); }

 private:
  void get(bool& value) {
    const auto raw = body_.get<std::uint8_t>();
    valid_ = valid_ && raw <= 1;
    value = raw == 1;
  }
  void get(Level& value) {
    const auto raw = body_.get<std::uint8_t>();
    valid_ = valid_ && raw <= static_cast<std::uint8_t>(Level::durable);
    value = valid_ ? static_cast<Level>(raw) : Level::none;
  }
  void get(Code& value) {
    value = static_cast<Code>(body_.get<std::int32_t>());
    valid_ = valid_ && code_name(value) != "unknown";
  }
  template <std::integral T>
  void get(T& value) {
    value = body_.get<T>();
  }
  template <typename T>
    requires std::is_class_v<T>
  void get(T& entry) { fields(entry); }
  void get(std::string& text) {
    text = body_.get_text();
    valid_ = valid_ && text.find('\0') == std::string::npos;
  }
  template <typename T>
  void get(std::vector<T>& list) {
    const std::size_t count = body_.get<std::uint32_t>();
    // No entry takes less than sizeof(u32): a count that cannot be true is refused before
    // allocating.
    valid_ = valid_ && count <= list_entries_max && count <= body_.left() / sizeof(std::uint32_t);
    if (!valid_) return;
    list.resize(count);
    for (T& entry : list) get(entry);
  }

  ByteReader body_;
  bool valid_ = true;
};

template <typename Message, std::size_t index = 0>
Result<Message> decode_body(std::size_t wanted, Bytes body) {
  if constexpr (index == std::variant_size_v<VariantOf<Message>>) {
    return Error(Code::invalid, "a message of unknown type " + std::to_string(wanted + 1));
  } else {
    if (wanted != index) return decode_body<Message, index + 1>(wanted, body);
    std::variant_alternative_t<index, VariantOf<Message>> message;
    Decoder decoder(body);
    decoder.fields(message);
    if (!decoder.done()) {
      return Error(Code::invalid,
                   "the body of a message of type " + std::to_string(index + 1) + " is malformed");
    }
    return Message(std::move(message));
  }
}

// One packet. The type's number is the message's place in the variant, from 1.
// Errors: too_large, invalid (a text with a zero byte).
template <typename Message>
Result<Buffer> encode(const Message& message, std::uint16_t protocol) {
  Encoder encoder;
  std::visit([&](const auto& fields) { encoder.fields(fields); }, message);
  return encoder.finish(static_cast<std::uint16_t>(message.index() + 1), protocol);
}

// `sides`: the two programs that may be of different releases, for the message.
// Errors: protocol (another protocol version; the message names both), invalid (anything else).
template <typename Message>
Result<Message> decode(Bytes packet, std::uint16_t protocol, std::string_view sides) {
  if (packet.size() < header_bytes || packet.size() > message_bytes_max) {
    return Error(Code::invalid,
                 "a packet of " + std::to_string(packet.size()) + " bytes is not a message");
  }
  ByteReader header(packet);
  const auto type = header.get<std::uint16_t>();
  const auto theirs = header.get<std::uint16_t>();
  const auto length = header.get<std::uint32_t>();
  if (theirs != protocol) {
    return Error(Code::protocol, "the peer speaks protocol " + std::to_string(theirs) +
                                     ", this program " + std::to_string(protocol) + ": " +
                                     std::string(sides) + " are of different releases");
  }
  if (length != header.left()) {
    return Error(Code::invalid, "a message says " + std::to_string(length) + " bytes and has " +
                                    std::to_string(header.left()));
  }
  if (type == 0) return Error(Code::invalid, "a message of unknown type 0");
  return decode_body<Message>(type - 1U, packet.subspan(header_bytes));
}

}  // namespace backstay::wire::codec
