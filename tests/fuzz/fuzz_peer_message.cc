#include "fuzz/fuzz.h"
#include "wire/peer_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace backstay;
  return fuzz::check_packet(data, size, wire::peer::decode, wire::peer::protocol_version);
}
