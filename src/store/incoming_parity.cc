#include "store/incoming_parity.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checksum.h"
#include "base/failpoint.h"
#include "store/catalog.h"
#include "store/needed_files.h"

namespace backstay::store {

namespace {

FileOf file_of(const format::ParityManifest& parity) {
  return {parity.version, parity.run, parity.node, /*parity=*/true};
}

}  // namespace

HeldFile held_parity(const format::ParityManifest& parity,
                     const std::vector<format::Manifest>& members) {
  HeldFile held;
  held.file = file_of(parity);
  held.segment_bytes = parity.parity_bytes();
  held.of.blocks = parity.parity;
  for (const format::Manifest& member : members) {
    held.of.group.push_back(member.node);
    held.nodes = member.nodes;
    held.ranks_of_run = member.ranks;
    const std::vector<Rank> ranks = member.ranks_here();
    held.ranks.insert(held.ranks.end(), ranks.begin(), ranks.end());
    const std::vector<FileOf> needs = needed_files(member);
    held.needs.insert(held.needs.end(), needs.begin(), needs.end());
  }
  std::ranges::sort(held.needs);
  return held;
}

IncomingParity::IncomingParity(tier::Tier& tier, format::ParityManifest manifest)
    : IncomingFile(tier, manifest.job, file_of(manifest), "parity"),
      manifest_(std::move(manifest)) {}

Status IncomingParity::open() {
  BACKSTAY_ASSIGN(members_, format::decode_members(manifest_));
  // The lengths are those that the members tell: nothing is made as large as they say before there
  // is room for it.
  if (format::encoded_bytes(manifest_) > format::manifest_bytes_max) {
    return Error(
        Code::too_large,
        fmt::format("a segment of the group is too long for parity: the manifest would have "
                    "{} bytes, at most {} are read; save on more nodes",
                    format::encoded_bytes(manifest_), format::manifest_bytes_max));
  }
  if (!is_recorded()) return Error(Code::busy, "the version is not recorded here any more");
  BACKSTAY_TRY(create(manifest_.parity_bytes()));
  manifest_.checksums.assign(manifest_.parity * manifest_.checksums_of_block(), 0);
  return {};
}

bool IncomingParity::is_recorded() {
  const StoredVersion stored = look_at(tier_, manifest_.job, manifest_.version);
  return stored.good() && stored.record.run == manifest_.run;
}

void IncomingParity::write(std::uint64_t offset, Bytes piece, Done done) {
  BACKSTAY_CHECK(is_created());
  note(offset, piece);
  put_piece(offset, piece, std::move(done));
}

void IncomingParity::note(std::uint64_t offset, Bytes piece) {
  const std::uint64_t in_block = offset % manifest_.block_bytes;
  BACKSTAY_CHECK(in_block % manifest_.checked_bytes == 0);
  BACKSTAY_CHECK(piece.size() <= manifest_.block_bytes - in_block);
  std::uint64_t index = offset / manifest_.block_bytes * manifest_.checksums_of_block() +
                        in_block / manifest_.checked_bytes;
  for (std::size_t at = 0; at < piece.size(); at += manifest_.checked_bytes, ++index) {
    const std::size_t bytes = std::min<std::size_t>(manifest_.checked_bytes, piece.size() - at);
    manifest_.checksums[index] = checksum(piece.subspan(at, bytes));
  }
  written_bytes_ += piece.size();
}

Status IncomingParity::seal(const std::optional<format::CommitRecord>&) {
  BACKSTAY_CHECK(is_created());
  if (written_bytes_ != manifest_.parity_bytes()) {
    return Error(Code::internal, "parity was sealed of which not every block was written");
  }
  BACKSTAY_TRY(seal_data(manifest_.parity_bytes()));
  // The folder may have been removed: put() would make it again.
  if (!is_recorded()) return Error(Code::again, "the version was removed meanwhile");
  BACKSTAY_TRY(publish(format::encode(manifest_)));
  if (const auto found = tier_.open(names_.data); !found.ok()) {
    return Error(Code::again, "the parity just made is gone: " + found.error().message());
  }
  BACKSTAY_TRY(tier_.sync(names_.folder));
  failpoint("parity.4");
  return {};
}

}  // namespace backstay::store
