// The parity that this node keeps of its group, on its way onto the disk (docs/format/parity.md).
// Blocks are written in any order; their checksums are made here, as they pass.
//
// Steps, each a failpoint:
//   parity.1  every block was written
//   parity.2  the parity file is sealed: content, size and name on the device
//   parity.3  its manifest is put: the parity exists from here on
//   parity.4  the folder is synced, and those above
// A crash before parity.3 leaves a file without a manifest, which is no parity.
//
// One thread at a time. Blocks on the tier when it opens and seals.
#pragma once

#include <string>
#include <vector>

#include "format/parity_manifest.h"
#include "store/incoming_file.h"
#include "tier/tier.h"

namespace backstay::store {

// Which ranks have an object in a file of the group, and what else is known of that parity.
HeldFile held_parity(const format::ParityManifest& parity,
                     const std::vector<format::Manifest>& members);

class IncomingParity final : public IncomingFile {
 public:
  // `manifest`: but for its checksums.
  IncomingParity(tier::Tier& tier, format::ParityManifest manifest);

  // Room for all of it is reserved. Errors: corrupt (the members' manifests are not good),
  // too_large (its own would be), busy (the folder holds no record of that version and run),
  // no_space, io.
  Status open();

  // A piece begins at a multiple of checked_bytes of its block and ends at one, or where the block
  // does.
  void write(std::uint64_t offset, Bytes piece, Done done) override;
  Status seal(const std::optional<format::CommitRecord>& record) override;
  HeldFile held() const override { return held_parity(manifest_, members_); }

 private:
  bool is_recorded();
  void note(std::uint64_t offset, Bytes piece);

  format::ParityManifest manifest_;
  std::vector<format::Manifest> members_;
  std::uint64_t written_bytes_ = 0;
};

}  // namespace backstay::store
