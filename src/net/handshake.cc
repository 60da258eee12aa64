#include "net/handshake.h"

#include <sodium.h>

#include <algorithm>

namespace backstay::net {

namespace {

constexpr std::string_view magic = "BKSTYNET";
constexpr std::size_t nonce_bytes = std::tuple_size_v<Nonce>;
static_assert(magic.size() + 2 + 1 + 1 + nonce_bytes + identity_bytes_max == hello_bytes);
static_assert(crypto_auth_hmacsha256_BYTES == proof_bytes);
static_assert(crypto_auth_hmacsha256_KEYBYTES == Secret::bytes);

Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

Buffer hello_of(Role role, const std::string& identity, const Nonce& nonce,
                std::uint16_t protocol) {
  BACKSTAY_CHECK(identity.size() <= identity_bytes_max);
  ByteWriter writer;
  writer.put_bytes(as_bytes(magic));
  writer.put(protocol);
  writer.put(static_cast<std::uint8_t>(role));
  writer.put(static_cast<std::uint8_t>(identity.size()));
  writer.put_bytes(std::as_bytes(std::span(nonce)));
  writer.put_bytes(as_bytes(identity));
  writer.put_zeros(identity_bytes_max - identity.size());
  return writer.take();
}

bool all_zero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte one) { return one == std::byte{0}; });
}

Role other(Role role) { return role == Role::caller ? Role::answerer : Role::caller; }

}  // namespace

Handshake::Handshake(Role role, const Secret& secret, const std::string& identity,
                     const Nonce& nonce, std::uint16_t protocol)
    : role_(role),
      secret_(secret),
      protocol_(protocol),
      ours_(hello_of(role, identity, nonce, protocol)) {}

Buffer Handshake::first() const { return role_ == Role::caller ? ours_ : Buffer{}; }

Handshake::Step Handshake::take(Bytes piece) {
  BACKSTAY_CHECK(wants_ > 0 && piece.size() == wants_);
  return theirs_.empty() ? take_hello(piece) : take_proof(piece);
}

Status Handshake::read_hello(Bytes hello) {
  ByteReader reader(hello);
  const Bytes mark = reader.bytes(magic.size());
  if (!std::ranges::equal(mark, as_bytes(magic)))
    return Error(Code::protocol, "it is not an agent of Backstay");
  const auto protocol = reader.get<std::uint16_t>();
  if (protocol != protocol_)
    return Error(Code::protocol, "it speaks version " + std::to_string(protocol) +
                                     " of the network protocol and we speak " +
                                     std::to_string(protocol_) +
                                     ": install one release of Backstay on all nodes");
  const auto role = reader.get<std::uint8_t>();
  const auto length = reader.get<std::uint8_t>();
  reader.bytes(nonce_bytes);
  if (role != static_cast<std::uint8_t>(other(role_)) || length > identity_bytes_max)
    return Error(Code::protocol, "its greeting is damaged");
  const Bytes identity = reader.bytes(length);
  if (!all_zero(reader.bytes(identity_bytes_max - length)))
    return Error(Code::protocol, "its greeting is damaged");
  peer_identity_.assign(reinterpret_cast<const char*>(identity.data()), identity.size());
  return {};
}

Buffer Handshake::proof_of(Role role) const {
  const bool we_called = role_ == Role::caller;
  ByteWriter said;
  said.put_bytes(as_bytes("backstay net 1"));
  said.put_zeros(2);
  said.put(static_cast<std::uint8_t>(role));
  said.put_bytes(we_called ? ours_ : theirs_);
  said.put_bytes(we_called ? theirs_ : ours_);
  Buffer proof(proof_bytes);
  crypto_auth_hmacsha256(reinterpret_cast<unsigned char*>(proof.data()),
                         reinterpret_cast<const unsigned char*>(said.view().data()), said.size(),
                         secret_.data());
  return proof;
}

Handshake::Step Handshake::take_hello(Bytes hello) {
  Step step;
  if (role_ == Role::answerer) step.reply = ours_;
  step.status = read_hello(hello);
  if (!step.status.ok()) return step;
  theirs_.assign(hello.begin(), hello.end());
  if (role_ == Role::caller) step.reply = proof_of(Role::caller);
  wants_ = proof_bytes;
  return step;
}

Handshake::Step Handshake::take_proof(Bytes proof) {
  if (role_ == Role::caller && all_zero(proof))
    return {
        {},
        Error(Code::permission,
              "it says that our secret is not its own: another job or user, or another key file")};
  const Buffer right = proof_of(other(role_));
  if (sodium_memcmp(right.data(), proof.data(), proof_bytes) != 0)
    return {role_ == Role::answerer ? Buffer(proof_bytes) : Buffer{},
            Error(Code::permission, "it does not know this job's secret")};
  wants_ = 0;
  return {role_ == Role::answerer ? proof_of(Role::answerer) : Buffer{}, {}};
}

}  // namespace backstay::net
