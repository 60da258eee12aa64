#include "meet/message.h"

#include <cstring>

#include "wire/codec.h"

namespace backstay::meet {
namespace {

constexpr std::uint16_t protocol = 1;
constexpr std::size_t word_bytes = sizeof(std::uint64_t);
static_assert(header_bytes == wire::codec::header_bytes);
static_assert(data_bytes_max / word_bytes <= wire::list_entries_max);

std::size_t words_for(std::size_t bytes) { return (bytes + word_bytes - 1) / word_bytes; }

}  // namespace

Data data_of(std::uint64_t number, Bytes bytes) {
  Data data{number, static_cast<std::uint32_t>(bytes.size()), {}};
  data.words.resize(words_for(bytes.size()));
  if (!bytes.empty()) std::memcpy(data.words.data(), bytes.data(), bytes.size());
  return data;
}

void copy_out(const Data& data, std::span<std::byte> to) {
  BACKSTAY_CHECK(to.size() == data.bytes && data.words.size() == words_for(data.bytes));
  if (!to.empty()) std::memcpy(to.data(), data.words.data(), to.size());
}

Result<Buffer> encode(const Message& message) { return wire::codec::encode(message, protocol); }

Result<std::size_t> message_bytes(Bytes header) {
  ByteReader reader(header.subspan(4));
  const std::size_t bytes = header_bytes + reader.get<std::uint32_t>();
  if (bytes > wire::message_bytes_max)
    return Error(Code::protocol, "it sends what is no message of a meeting");
  return bytes;
}

Result<Message> decode(Bytes packet) {
  BACKSTAY_ASSIGN(Message message,
                  wire::codec::decode<Message>(packet, protocol, "companion and `backstay run`"));
  const auto* data = std::get_if<Data>(&message);
  if (data != nullptr &&
      (data->bytes > data_bytes_max || data->words.size() != words_for(data->bytes)))
    return Error(Code::invalid, "data whose length is not that of its words");
  return message;
}

}  // namespace backstay::meet
