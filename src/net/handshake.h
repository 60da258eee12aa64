// How two agents prove to each other that they know the job's secret: the state of one side, bytes
// in and bytes out, no I/O (docs/protocol/network.md#handshake).
//
// The owner sends what first() returns, then collects exactly wants() bytes, hands them to take(),
// sends the reply (also when the status is an error, then ends the connection), and so on until
// wants() is 0. No other bytes of a peer are looked at, and no size that the peer chose is
// allocated.
#pragma once

#include <array>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "net/secret.h"

namespace backstay::net {

inline constexpr std::uint16_t protocol_version = 1;
inline constexpr std::size_t hello_bytes = 128;
inline constexpr std::size_t proof_bytes = 32;
inline constexpr std::size_t identity_bytes_max = 84;

enum class Role : std::uint8_t { caller = 1, answerer = 2 };
using Nonce = std::array<std::uint8_t, 32>;

class Handshake {
 public:
  // `identity` is at most identity_bytes_max long; `nonce` is fresh from fill_random() outside of
  // tests.
  Handshake(Role role, const Secret& secret, const std::string& identity, const Nonce& nonce,
            std::uint16_t protocol = protocol_version);

  Buffer first() const;
  // 0: the handshake is done and the peer has proved who it is.
  std::size_t wants() const { return wants_; }

  struct Step {
    Buffer reply;
    Status status;
  };
  // Status, each for good: protocol (not one of us, or another version), permission (wrong secret).
  Step take(Bytes piece);

  // Known once wants() is 0.
  const std::string& peer_identity() const { return peer_identity_; }

 private:
  Status read_hello(Bytes hello);
  Buffer proof_of(Role role) const;
  Step take_hello(Bytes hello);
  Step take_proof(Bytes proof);

  const Role role_;
  const Secret secret_;
  const std::uint16_t protocol_;
  Buffer ours_, theirs_;  // hellos
  std::size_t wants_ = hello_bytes;
  std::string peer_identity_;
};

}  // namespace backstay::net
