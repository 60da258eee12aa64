// Whatever a peer says, without the secret it is never let in, and gets no proof from who was
// called.
#include "fuzz/fuzz.h"
#include "net/handshake.h"

namespace {

using namespace backstay;

void talk(net::Role role, Bytes said) {
  static const net::Secret secret = net::Secret::random();
  net::Handshake handshake(role, secret, "node 7", net::Nonce{});
  for (std::size_t at = 0; said.size() - at >= handshake.wants();) {
    const auto step = handshake.take(said.subspan(at, handshake.wants()));
    at += at == 0 ? net::hello_bytes : net::proof_bytes;
    FUZZ_PROMISE(handshake.wants() > 0);
    FUZZ_PROMISE(handshake.peer_identity().size() <= net::identity_bytes_max);
    FUZZ_PROMISE(step.reply.size() <= net::hello_bytes);
    if (!step.status.ok()) {
      const Code code = step.status.error().code();
      FUZZ_PROMISE(code == Code::protocol || code == Code::permission);
      return;
    }
    FUZZ_PROMISE(at == net::hello_bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Buffer said = fuzz::input(data, size);
  for (const net::Role role : {net::Role::caller, net::Role::answerer}) {
    talk(role, said);
    if (size < net::hello_bytes) continue;
    Buffer greeting = said;  // past the magic and the version
    std::memcpy(greeting.data(), "BKSTYNET", 8);
    test::overwrite(greeting, 8, net::protocol_version);
    greeting[10] = static_cast<std::byte>(role == net::Role::caller ? 2 : 1);
    talk(role, greeting);
  }
  return 0;
}
