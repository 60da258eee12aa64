#include "format/commit.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "format/layout.h"

namespace backstay::format {

namespace {

constexpr layout::Magic commit_magic = layout::magic("BKSTCMT1");
constexpr std::string_view commit_what = "commit record";

struct Commit {
  layout::Magic magic;
  std::uint32_t format;
  std::uint32_t level;
  std::uint64_t version;
  std::uint64_t run;
  std::uint32_t nodes;
  std::uint32_t ranks;
  std::uint64_t payload_bytes;
  std::uint64_t manifests_sum;
  std::uint64_t captured_ns;
  std::uint64_t committed_ns;
  layout::JobField job;
  std::uint32_t need_count;
  std::uint32_t zero;
  std::array<Need, needs_max> needs;
  std::uint64_t checksum;
};
static_assert(sizeof(Need) == need_bytes);
static_assert(sizeof(Commit) == commit_record_bytes && offsetof(Commit, payload_bytes) == 40 &&
              offsetof(Commit, job) == 72 && offsetof(Commit, need_count) == 176 &&
              offsetof(Commit, needs) == 184 && offsetof(Commit, checksum) == 504);

std::string_view wrong_with(const Commit& commit) {
  if (commit.level < static_cast<std::uint32_t>(Level::local) ||
      commit.level > static_cast<std::uint32_t>(Level::durable)) {
    return "unknown level";
  }
  if (commit.version == 0 || commit.nodes == 0 || commit.ranks == 0) {
    return "version, nodes or ranks are 0";
  }
  if (commit.need_count > needs_max) return "number of needed versions";
  const auto needs = std::span(commit.needs);
  if (commit.zero != 0 || !layout::all_zero(std::as_bytes(needs.subspan(commit.need_count)))) {
    return "bytes that must be zero are not";
  }
  return wrong_with_needs(needs.first(commit.need_count), commit.version);
}

}  // namespace

Buffer encode(const CommitRecord& record) {
  BACKSTAY_CHECK(record.needs.size() <= needs_max);
  Commit commit{commit_magic,
                format_number,
                static_cast<std::uint32_t>(record.level),
                record.version,
                record.run,
                record.nodes,
                record.ranks,
                record.payload_bytes,
                record.manifests_sum,
                record.captured_ns,
                record.committed_ns,
                layout::job_field(record.job),
                static_cast<std::uint32_t>(record.needs.size()),
                0,
                {},
                0};
  std::copy(record.needs.begin(), record.needs.end(), commit.needs.begin());
  commit.checksum = layout::checksum_of(commit);
  ByteWriter out;
  out.put_bytes(layout::bytes_of(commit));
  return out.take();
}

Result<CommitRecord> decode_commit(Bytes bytes) {
  if (bytes.size() != commit_record_bytes)
    return layout::damaged(commit_what, "is not 512 bytes long");
  BACKSTAY_ASSIGN(const Commit commit,
                  layout::read_record<Commit>(bytes, commit_magic, commit_what));
  if (const auto wrong = wrong_with(commit); !wrong.empty())
    return layout::damaged(commit_what, wrong);
  CommitRecord record;
  BACKSTAY_ASSIGN(record.job, layout::job_of(commit.job, commit_what));
  record.level = static_cast<Level>(commit.level);
  record.version = commit.version;
  record.run = commit.run;
  record.nodes = commit.nodes;
  record.ranks = commit.ranks;
  record.payload_bytes = commit.payload_bytes;
  record.manifests_sum = commit.manifests_sum;
  record.captured_ns = commit.captured_ns;
  record.committed_ns = commit.committed_ns;
  record.needs.assign(commit.needs.begin(), commit.needs.begin() + commit.need_count);
  return record;
}

}  // namespace backstay::format
