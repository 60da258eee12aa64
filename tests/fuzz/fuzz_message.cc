#include "fuzz/fuzz.h"
#include "wire/message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace backstay;
  return fuzz::check_packet(data, size, wire::decode, wire::protocol_version);
}
