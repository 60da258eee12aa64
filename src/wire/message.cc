// Both directions come from one table: fields_of<T> lists the members of a message in their order
// on the wire. A text is u16 + bytes, a list u32 + entries, a bool u8 (0 or 1), Level u8, Code i32.
#include "wire/message.h"

#include <concepts>
#include <limits>
#include <optional>
#include <tuple>
#include <type_traits>

namespace backstay::wire {

namespace {

constexpr std::size_t header_bytes = 2 + 2 + 4;

template <typename T>
constexpr auto fields_of = std::tuple<>();  // messages without fields

template <>
constexpr auto fields_of<ChunkInPool> = std::tuple(&ChunkInPool::buffer, &ChunkInPool::length,
                                                   &ChunkInPool::object_offset,
                                                   &ChunkInPool::checksum);
template <>
constexpr auto fields_of<Hello> = std::tuple(&Hello::release, &Hello::job, &Hello::run,
                                             &Hello::rank, &Hello::ranks, &Hello::local_rank,
                                             &Hello::local_ranks, &Hello::node, &Hello::nodes,
                                             &Hello::pid, &Hello::dir, &Hello::keep);
template <>
constexpr auto fields_of<Begin> = std::tuple(&Begin::version, &Begin::object_bytes);
template <>
constexpr auto fields_of<Filled> = std::tuple(&Filled::version, &Filled::chunks);
template <>
constexpr auto fields_of<End> = std::tuple(&End::version);
template <>
constexpr auto fields_of<Query> = std::tuple(&Query::version);
template <>
constexpr auto fields_of<Await> = std::tuple(&Await::version, &Await::level);
template <>
constexpr auto fields_of<Restart> = std::tuple(&Restart::version);
template <>
constexpr auto fields_of<Verified> = std::tuple(&Verified::version, &Verified::buffers,
                                                &Verified::good, &Verified::why,
                                                &Verified::attempt);
template <>
constexpr auto fields_of<Refuse> = std::tuple(&Refuse::version, &Refuse::code, &Refuse::message);
template <>
constexpr auto fields_of<Restored> = std::tuple(&Restored::version, &Restored::code);
template <>
constexpr auto fields_of<Fetch> = std::tuple(&Fetch::version, &Fetch::rank, &Fetch::begin,
                                             &Fetch::bytes, &Fetch::last);
template <>
constexpr auto fields_of<Request> = std::tuple(&Request::job, &Request::stop);
template <>
constexpr auto fields_of<Shutdown> = std::tuple(&Shutdown::drain);
template <>
constexpr auto fields_of<Welcome> = std::tuple(&Welcome::release, &Welcome::pool_bytes,
                                               &Welcome::buffer_bytes, &Welcome::home_first,
                                               &Welcome::home_count, &Welcome::newest);
template <>
constexpr auto fields_of<Grant> = std::tuple(&Grant::version, &Grant::buffers);
template <>
constexpr auto fields_of<Captured> = std::tuple(&Captured::version, &Captured::code,
                                                &Captured::message);
template <>
constexpr auto fields_of<LevelIs> = std::tuple(&LevelIs::version, &LevelIs::level, &LevelIs::code,
                                               &LevelIs::message);
template <>
constexpr auto fields_of<Plan> = std::tuple(&Plan::version, &Plan::object_bytes, &Plan::from_pool,
                                            &Plan::code, &Plan::message, &Plan::attempt);
template <>
constexpr auto fields_of<Chunks> = std::tuple(&Chunks::version, &Chunks::held, &Chunks::chunks,
                                              &Chunks::attempt);
template <>
constexpr auto fields_of<Deliver> = std::tuple(&Deliver::version);
template <>
constexpr auto fields_of<Withdraw> = std::tuple(&Withdraw::version, &Withdraw::attempt);
template <>
constexpr auto fields_of<Withdrawn> = std::tuple(&Withdrawn::version, &Withdrawn::attempt);
template <>
constexpr auto fields_of<Answer> = std::tuple(&Answer::code, &Answer::json);
template <>
constexpr auto fields_of<Failure> = std::tuple(&Failure::code, &Failure::message);
template <>
constexpr auto fields_of<Forget> = std::tuple(&Forget::job, &Forget::dir, &Forget::version);
template <>
constexpr auto fields_of<AwaitNewer> = std::tuple(&AwaitNewer::job, &AwaitNewer::dir,
                                                  &AwaitNewer::after, &AwaitNewer::level);

// A message without a table entry would be sent empty: only structs without members may be.
template <typename T>
constexpr bool fieldless = std::is_empty_v<T>;
template <typename T>
constexpr bool described = fieldless<T> == (std::tuple_size_v<decltype(fields_of<T>)> == 0);
template <typename Variant>
constexpr bool all_described = false;
template <typename... Ts>
constexpr bool all_described<std::variant<Ts...>> = (described<Ts> && ...);
static_assert(all_described<Message> && described<ChunkInPool>);

class Encoder {
 public:
  template <typename T>
  void fields(const T& value) {
    std::apply([&](auto... member) { (put(value.*member), ...); }, fields_of<T>);
  }

  Result<Buffer> finish(std::uint16_t type) {
    if (error_.has_value()) return *error_;
    if (body_.size() + header_bytes > message_bytes_max) {
      return Error(Code::too_large, "a message of " + std::to_string(body_.size()) +
                                        " bytes does not fit into one packet of 64 KiB");
    }
    ByteWriter packet;
    packet.put(type);
    packet.put(protocol_version);
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
  void put(const ChunkInPool& chunk) { fields(chunk); }
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
    std::apply([&](auto... member) { (get(value.*member), ...); }, fields_of<T>);
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
  void get(ChunkInPool& chunk) { fields(chunk); }
  void get(std::string& text) {
    text = body_.get_text();
    valid_ = valid_ && text.find('\0') == std::string::npos;
  }
  template <typename T>
  void get(std::vector<T>& list) {
    const std::size_t count = body_.get<std::uint32_t>();
    // No entry takes less than sizeof(u32): what cannot be there is refused before allocating.
    valid_ = valid_ && count <= list_entries_max && count <= body_.left() / sizeof(std::uint32_t);
    if (!valid_) return;
    list.resize(count);
    for (T& entry : list) get(entry);
  }

  ByteReader body_;
  bool valid_ = true;
};

template <std::size_t index = 0>
Result<Message> decode_body(std::size_t wanted, Bytes body) {
  if constexpr (index == std::variant_size_v<Message>) {
    return Error(Code::invalid, "a message of unknown type " + std::to_string(wanted + 1));
  } else {
    if (wanted != index) return decode_body<index + 1>(wanted, body);
    std::variant_alternative_t<index, Message> message;
    Decoder decoder(body);
    decoder.fields(message);
    if (!decoder.done()) {
      return Error(Code::invalid,
                   "the body of a message of type " + std::to_string(index + 1) + " is malformed");
    }
    return Message(std::in_place_index<index>, std::move(message));
  }
}

}  // namespace

Result<Buffer> encode(const Message& message) {
  Encoder encoder;
  std::visit([&](const auto& fields) { encoder.fields(fields); }, message);
  return encoder.finish(static_cast<std::uint16_t>(message.index() + 1));
}

Result<Message> decode(Bytes packet) {
  if (packet.size() < header_bytes || packet.size() > message_bytes_max) {
    return Error(Code::invalid,
                 "a packet of " + std::to_string(packet.size()) + " bytes is not a message");
  }
  ByteReader header(packet);
  const auto type = header.get<std::uint16_t>();
  const auto protocol = header.get<std::uint16_t>();
  const auto length = header.get<std::uint32_t>();
  if (protocol != protocol_version) {
    return Error(Code::protocol, "the peer speaks protocol " + std::to_string(protocol) +
                                     ", this program " + std::to_string(protocol_version) +
                                     ": program and agent are of different releases");
  }
  if (length != header.left()) {
    return Error(Code::invalid, "a message says " + std::to_string(length) + " bytes and has " +
                                    std::to_string(header.left()));
  }
  if (type == 0) return Error(Code::invalid, "a message of unknown type 0");
  return decode_body(type - 1U, packet.subspan(header_bytes));
}

}  // namespace backstay::wire
