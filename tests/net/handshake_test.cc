#include "net/handshake.h"

#include <optional>

#include "expect_status.h"
#include "support/seed.h"

namespace backstay {
namespace {

using net::Handshake;
using net::Role;
using testing::fails_with;
using testing::is_ok;

net::Nonce nonce(std::uint8_t value) {
  net::Nonce all;
  all.fill(value);
  return all;
}

class HandshakeTest : public ::testing::Test {
 protected:
  const net::Secret secret_ = net::Secret::random();
  const net::Secret other_ = net::Secret::random();

  Handshake caller(const net::Secret& secret,
                   std::uint16_t protocol = net::protocol_version) const {
    return {Role::caller, secret, "node 1", nonce(1), protocol};
  }
  Handshake answerer(const net::Secret& secret,
                     std::uint16_t protocol = net::protocol_version) const {
    return {Role::answerer, secret, "node 2", nonce(2), protocol};
  }
};

// Lets two sides talk until one has failed or both are done; what each ended with.
struct Ended {
  Status caller, answerer;
};
Ended talk(Handshake& caller, Handshake& answerer) {
  Ended ended;
  Buffer to_answerer = caller.first(), to_caller;
  while (!to_answerer.empty() || !to_caller.empty()) {
    if (!to_answerer.empty()) {
      auto step = answerer.take(std::exchange(to_answerer, {}));
      to_caller = step.reply;
      ended.answerer = step.status;
    }
    if (!to_caller.empty()) {
      auto step = caller.take(std::exchange(to_caller, {}));
      ended.caller = step.status;
      if (ended.answerer.ok()) to_answerer = step.reply;
    }
  }
  return ended;
}

TEST_F(HandshakeTest, BothProveThemselves) {
  Handshake a = caller(secret_), b = answerer(secret_);
  EXPECT_EQ(a.wants(), net::hello_bytes);
  EXPECT_EQ(b.first().size(), 0u);
  const Ended ended = talk(a, b);
  EXPECT_TRUE(is_ok(ended.caller));
  EXPECT_TRUE(is_ok(ended.answerer));
  EXPECT_EQ(a.wants(), 0u);
  EXPECT_EQ(b.wants(), 0u);
  EXPECT_EQ(a.peer_identity(), "node 2");
  EXPECT_EQ(b.peer_identity(), "node 1");
}

TEST_F(HandshakeTest, AnotherSecretIsRefusedByBoth) {
  Handshake a = caller(other_), b = answerer(secret_);
  const Ended ended = talk(a, b);
  EXPECT_TRUE(fails_with(ended.caller, Code::permission));
  EXPECT_TRUE(fails_with(ended.answerer, Code::permission));
  EXPECT_NE(a.wants(), 0u);
  EXPECT_NE(b.wants(), 0u);
}

TEST_F(HandshakeTest, AnotherVersionIsNamedByBoth) {
  Handshake a = caller(secret_, 7), b = answerer(secret_);
  const Ended ended = talk(a, b);
  ASSERT_TRUE(fails_with(ended.caller, Code::protocol));
  ASSERT_TRUE(fails_with(ended.answerer, Code::protocol));
  for (const auto& status : {ended.caller, ended.answerer}) {
    EXPECT_NE(status.error().message().find("version"), std::string::npos);
    EXPECT_NE(status.error().message().find('7'), std::string::npos);
    EXPECT_NE(status.error().message().find('1'), std::string::npos);
  }
}

TEST_F(HandshakeTest, SomethingElseThatListensIsNoAgent) {
  Handshake a = caller(secret_);
  const std::string http = "HTTP/1.1 400 Bad Request\r\n" + std::string(200, ' ');
  const auto step = a.take(std::as_bytes(std::span(http)).first(net::hello_bytes));
  EXPECT_TRUE(fails_with(step.status, Code::protocol));
  EXPECT_TRUE(step.reply.empty());
}

TEST_F(HandshakeTest, AProofSentBackProvesNothing) {
  Handshake a = caller(secret_);
  const Buffer hello = a.first();
  EXPECT_FALSE(a.take(hello).status.ok()) << "our own greeting, sent back";
  Handshake b = caller(secret_);
  const Handshake::Step step = b.take(answerer(secret_).take(b.first()).reply);
  ASSERT_TRUE(is_ok(step.status));
  EXPECT_TRUE(fails_with(b.take(step.reply).status, Code::permission)) << "our own proof";
}

TEST_F(HandshakeTest, AProofIsGoodOnce) {
  Handshake a = caller(secret_), b = answerer(secret_);
  const Buffer hello = a.first();
  const Buffer proof = a.take(b.take(hello).reply).reply;
  ASSERT_TRUE(is_ok(b.take(proof).status));
  Handshake later(Role::answerer, secret_, "node 2", nonce(3));
  ASSERT_TRUE(is_ok(later.take(hello).status));
  const auto step = later.take(proof);
  EXPECT_TRUE(fails_with(step.status, Code::permission));
  EXPECT_EQ(step.reply, Buffer(net::proof_bytes)) << "a refused caller gets zeros, and no proof";
}

// One bit of any message, changed on the way: one side notices.
TEST_F(HandshakeTest, EveryBitCounts) {
  for (std::size_t message = 0; message < 4; ++message) {
    const std::size_t size = message < 2 ? net::hello_bytes : net::proof_bytes;
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      Handshake a = caller(secret_), b = answerer(secret_);
      Handshake* to[] = {&b, &a, &b, &a};
      Buffer piece = a.first();
      bool noticed = false;
      for (std::size_t i = 0; i < 4 && !noticed; ++i) {
        if (i == message) piece[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
        auto step = to[i]->take(piece);
        noticed = !step.status.ok();
        piece = step.reply;
      }
      ASSERT_TRUE(noticed) << "bit " << bit << " of message " << message;
    }
  }
}

TEST_F(HandshakeTest, IdentitiesOfAllLengths) {
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, net::identity_bytes_max}) {
    Handshake a(Role::caller, secret_, std::string(length, 'x'), nonce(1)), b = answerer(secret_);
    EXPECT_TRUE(is_ok(talk(a, b).answerer));
    EXPECT_EQ(b.peer_identity(), std::string(length, 'x'));
  }
}

}  // namespace
}  // namespace backstay
