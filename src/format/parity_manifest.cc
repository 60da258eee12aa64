#include "format/parity_manifest.h"

#include <algorithm>
#include <set>

#include "format/layout.h"
#include "format/segment.h"

namespace backstay::format {

namespace {

constexpr layout::Magic parity_magic = layout::magic("BKSTPAR1");
constexpr std::string_view parity_text = "parity manifest";
constexpr std::size_t parity_digest_bytes = sizeof(std::uint64_t);

struct ParityHeader {
  layout::Magic magic;
  std::uint32_t format;
  std::uint32_t node;
  std::uint64_t version;
  std::uint64_t run;
  std::uint64_t block_bytes;
  std::uint64_t manifests_bytes;
  std::uint64_t checksums;
  std::uint32_t data;
  std::uint32_t parity;
  std::uint32_t checked_bytes;
  std::uint32_t zero;
  layout::JobField job;
  std::uint64_t checksum;
};
static_assert(sizeof(ParityHeader) == parity_header_bytes && offsetof(ParityHeader, data) == 56 &&
              offsetof(ParityHeader, job) == 72 && offsetof(ParityHeader, checksum) == 176);

struct MemberRecord {
  std::uint64_t manifest_bytes;
  std::uint64_t zero;
};
static_assert(sizeof(MemberRecord) == parity_member_bytes);

// An empty string: nothing is wrong.
std::string_view wrong_with(const ParityHeader& header) {
  if (header.version == 0) return "version 0";
  if (header.zero != 0) return "bytes that must be zero are not";
  if (header.data == 0 || header.parity == 0 || header.parity > parity_blocks_max ||
      header.data > parity_members_max || header.data + header.parity > parity_members_max) {
    return "numbers of blocks out of range";
  }
  if (header.block_bytes == 0 || header.block_bytes % segment_alignment != 0 ||
      header.block_bytes > UINT64_MAX / parity_blocks_max / 2) {
    return "length of a block is not a whole number of slots";
  }
  if (header.checked_bytes == 0 || header.checked_bytes % segment_alignment != 0) {
    return "length that a checksum covers is not a whole number of slots";
  }
  const std::uint64_t of_block = (header.block_bytes - 1) / header.checked_bytes + 1;
  if (header.checksums != header.parity * of_block) return "number of checksums";
  return {};
}

// Divides instead of multiplying: the counts may be anything.
bool length_fits(const ParityHeader& header, std::size_t file_bytes) {
  const std::uint64_t fixed = parity_header_bytes + parity_digest_bytes +
                              std::uint64_t{header.data + header.parity} * parity_member_bytes;
  if (file_bytes < fixed) return false;
  const std::uint64_t left = file_bytes - fixed;
  return header.manifests_bytes <= left &&
         (left - header.manifests_bytes) % sizeof(std::uint64_t) == 0 &&
         (left - header.manifests_bytes) / sizeof(std::uint64_t) == header.checksums;
}

Status read_parts(Bytes bytes, const ParityHeader& header, ParityManifest& manifest) {
  const std::uint32_t members = header.data + header.parity;
  std::size_t table = parity_header_bytes;
  std::size_t at = table + std::size_t{members} * parity_member_bytes;
  std::uint64_t left = header.manifests_bytes;
  for (std::uint32_t i = 0; i < members; ++i, table += parity_member_bytes) {
    const auto member = layout::read<MemberRecord>(bytes, table);
    if (member.zero != 0) return layout::damaged(parity_text, "bytes that must be zero are not");
    if (member.manifest_bytes > left)
      return layout::damaged(parity_text, "lengths of the manifests");
    const Bytes part = bytes.subspan(at, member.manifest_bytes);
    manifest.manifests.emplace_back(part.begin(), part.end());
    at += member.manifest_bytes;
    left -= member.manifest_bytes;
  }
  if (left != 0) return layout::damaged(parity_text, "lengths of the manifests");
  manifest.checksums.reserve(header.checksums);
  for (std::uint64_t i = 0; i < header.checksums; ++i, at += sizeof(std::uint64_t)) {
    manifest.checksums.push_back(layout::read<std::uint64_t>(bytes, at));
  }
  return {};
}

}  // namespace

std::uint64_t parity_block_bytes(std::uint64_t longest_segment, std::uint32_t data) {
  const std::uint64_t unit = data * segment_alignment;
  return (longest_segment / unit + (longest_segment % unit != 0 ? 1 : 0)) * segment_alignment;
}

Result<std::vector<Manifest>> decode_members(const ParityManifest& parity) {
  std::vector<Manifest> members;
  std::set<NodeId> nodes;
  std::uint64_t longest = 0;
  for (const Buffer& bytes : parity.manifests) {
    BACKSTAY_ASSIGN(Manifest member, decode_manifest(bytes));
    if (member.job != parity.job || member.version != parity.version || member.run != parity.run ||
        !nodes.insert(member.node).second) {
      return layout::damaged(parity_text, "a member's manifest belongs elsewhere");
    }
    longest = std::max(longest, member.segment_bytes);
    members.push_back(std::move(member));
  }
  if (!nodes.contains(parity.node))
    return layout::damaged(parity_text, "of a node that is no member");
  if (parity_block_bytes(longest, parity.data) != parity.block_bytes) {
    return layout::damaged(parity_text, "length of a block is not that of the members' segments");
  }
  return members;
}

std::uint64_t encoded_bytes(const ParityManifest& manifest) {
  std::uint64_t bytes = parity_header_bytes + parity_digest_bytes +
                        manifest.parity * manifest.checksums_of_block() * sizeof(std::uint64_t);
  for (const Buffer& member : manifest.manifests) bytes += parity_member_bytes + member.size();
  return bytes;
}

Buffer encode(const ParityManifest& manifest) {
  ParityHeader header{parity_magic,
                      format_number,
                      manifest.node,
                      manifest.version,
                      manifest.run,
                      manifest.block_bytes,
                      0,
                      manifest.checksums.size(),
                      manifest.data,
                      manifest.parity,
                      manifest.checked_bytes,
                      0,
                      layout::job_field(manifest.job),
                      0};
  for (const Buffer& member : manifest.manifests) header.manifests_bytes += member.size();
  header.checksum = layout::checksum_of(header);
  ByteWriter out;
  out.put_bytes(layout::bytes_of(header));
  for (const Buffer& member : manifest.manifests) {
    out.put_bytes(layout::bytes_of(MemberRecord{member.size(), 0}));
  }
  for (const Buffer& member : manifest.manifests) out.put_bytes(member);
  for (const std::uint64_t one : manifest.checksums) out.put(one);
  out.put(checksum(out.view()));
  return out.take();
}

Result<ParityManifest> decode_parity_manifest(Bytes bytes) {
  BACKSTAY_ASSIGN(const auto header,
                  layout::read_record<ParityHeader>(bytes, parity_magic, parity_text));
  if (const auto wrong = wrong_with(header); !wrong.empty())
    return layout::damaged(parity_text, wrong);
  if (!length_fits(header, bytes.size())) {
    return layout::damaged(parity_text, "its length does not fit what it holds");
  }
  const Bytes covered = bytes.first(bytes.size() - parity_digest_bytes);
  if (layout::read<std::uint64_t>(bytes, covered.size()) != checksum(covered)) {
    return layout::damaged(parity_text, "checksum of the entries does not match");
  }
  ParityManifest manifest;
  BACKSTAY_ASSIGN(manifest.job, layout::job_of(header.job, parity_text));
  manifest.node = header.node;
  manifest.version = header.version;
  manifest.run = header.run;
  manifest.data = header.data;
  manifest.parity = header.parity;
  manifest.block_bytes = header.block_bytes;
  manifest.checked_bytes = header.checked_bytes;
  BACKSTAY_TRY(read_parts(bytes, header, manifest));
  return manifest;
}

}  // namespace backstay::format
