#include "wire/message.h"

#include "wire/codec.h"

namespace backstay::wire {

Message::Message() = default;
Message::Message(const Message& other) = default;
Message::Message(Message&& other) noexcept = default;
Message& Message::operator=(const Message& other) = default;
Message& Message::operator=(Message&& other) noexcept = default;
Message::~Message() = default;

Result<Buffer> encode(const Message& message) { return codec::encode(message, protocol_version); }

Result<Message> decode(Bytes packet) {
  return codec::decode<Message>(packet, protocol_version, "program and agent");
}

}  // namespace backstay::wire
