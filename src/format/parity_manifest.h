// The manifest of the parity that a node keeps of its group (docs/format/parity.md): struct <->
// bytes, no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "format/manifest.h"

namespace backstay::format {

inline constexpr std::size_t parity_header_bytes = 184;
inline constexpr std::size_t parity_member_bytes = 16;
inline constexpr std::uint32_t parity_blocks_max = 4;
inline constexpr std::uint32_t parity_members_max = 256;

struct ParityManifest {
  std::string job;
  NodeId node = 0;  // who keeps the parity: a member
  VersionNumber version = 0;
  RunId run = 0;
  std::uint32_t data = 0;         // k
  std::uint32_t parity = 0;       // m
  std::uint64_t block_bytes = 0;  // P
  std::uint32_t checked_bytes =
      0;  // a checksum covers so many bytes of a block; its last one the rest
  std::vector<Buffer>
      manifests;  // of all k + m members as they encoded them, in their order on the ring
  std::vector<std::uint64_t> checksums;  // of the parity file, block by block

  std::uint64_t parity_bytes() const { return parity * block_bytes; }
  std::uint64_t checksums_of_block() const {
    return block_bytes / checked_bytes + (block_bytes % checked_bytes != 0 ? 1 : 0);
  }
};

// P: the longest of the segments divided by k, rounded up to 4096. Precondition: k is not 0.
std::uint64_t parity_block_bytes(std::uint64_t longest_segment, std::uint32_t data);

// The members' manifests, in their order. Errors: corrupt (one is damaged, or not of this version
// and run, or of another length than the blocks are made for; a member is there twice; `node` is
// none).
Result<std::vector<Manifest>> decode_members(const ParityManifest& parity);

// How long encode() makes it once it has all its checksums, which need not be there.
std::uint64_t encoded_bytes(const ParityManifest& manifest);
Buffer encode(const ParityManifest& manifest);
// All of it is checked but the members' manifests, which decode_members() does.
// Errors: format (not ours or newer), corrupt (says which check failed).
Result<ParityManifest> decode_parity_manifest(Bytes bytes);

}  // namespace backstay::format
