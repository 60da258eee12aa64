#include "fuzz/fuzz.h"
#include "wire/tree_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace backstay;
  return fuzz::check_packet(data, size, wire::tree::decode, wire::tree::protocol_version);
}
