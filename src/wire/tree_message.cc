#include "wire/tree_message.h"

#include "wire/codec.h"

namespace backstay::wire::tree {

Result<Buffer> encode(const Message& message) { return codec::encode(message, protocol_version); }

Result<Message> decode(Bytes packet) {
  return codec::decode<Message>(packet, protocol_version, "these two agents");
}

}  // namespace backstay::wire::tree
