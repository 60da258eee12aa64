#include "fuzz/fuzz.h"
#include "wire/peer_message.h"

namespace {

using namespace backstay;

void check(const Buffer& packet) {
  const auto message = wire::peer::decode(packet);
  if (!message.ok()) return;
  const auto again = wire::peer::encode(*message);
  FUZZ_PROMISE(again.ok() && *again == packet);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Buffer packet = fuzz::input(data, size);
  check(packet);
  if (size < 8) return 0;
  test::overwrite(packet, 2, wire::peer::protocol_version);
  test::overwrite(packet, 4, static_cast<std::uint32_t>(size - 8));
  check(packet);
  return 0;
}
