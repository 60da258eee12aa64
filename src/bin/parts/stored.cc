#include "bin/parts/stored.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "format/names.h"
#include "format/segment.h"
#include "io/posix.h"
#include "io/ring.h"
#include "tier/dir.h"

namespace backstay::bin {
namespace {

constexpr std::uint64_t page = format::segment_alignment;

}  // namespace

Result<Stored> Stored::open(const Config& config) {
  const std::string& dir = config.storage.dir;
  // A missing folder holds nothing; a file in its place, or another user's folder, is a mistake.
  std::error_code failure;
  if (std::filesystem::exists(dir, failure)) {
    if (!std::filesystem::is_directory(dir, failure))
      return Error(Code::invalid, dir + " is not a folder; set storage.dir or --dir");
    if (::access(dir.c_str(), R_OK | X_OK) != 0) return errno_error("read " + dir, errno);
  }
  tier::DirOptions options;
  options.root = dir;
  BACKSTAY_ASSIGN(auto tier, tier::open_dir_tier(config.writer, options));
  return Stored(dir, std::move(tier));
}

Result<std::vector<std::string>> Stored::jobs() {
  BACKSTAY_ASSIGN(const std::vector<std::string> names, tier_->list(""));
  std::vector<std::string> jobs;
  for (const std::string& name : names) {
    if (!check_job_name(name).ok()) continue;
    const auto inside = tier_->list(name);
    if (!inside.ok()) continue;  // a file, or another user's folder
    const auto is_version = [](const std::string& one) {
      return format::version_of_folder(one).has_value();
    };
    if (std::any_of(inside->begin(), inside->end(), is_version)) jobs.push_back(name);
  }
  return jobs;
}

std::vector<std::string> Stored::unreadable() {
  std::vector<std::string> found;
  const auto names = tier_->list("");
  if (!names.ok()) return found;
  for (const std::string& name : *names) {
    const std::string path = dir_ + "/" + name;
    std::error_code failure;
    if (check_job_name(name).ok() && std::filesystem::is_directory(path, failure) &&
        ::access(path.c_str(), R_OK | X_OK) != 0)
      found.push_back(name);
  }
  return found;
}

Result<std::vector<store::StoredVersion>> Stored::versions(const std::string& job,
                                                           std::vector<std::string>* ignored) {
  BACKSTAY_ASSIGN(auto found, store::scan(*tier_, job, ignored));
  if (!found.empty()) return found;
  BACKSTAY_ASSIGN(const auto others, jobs());
  std::string there =
      others.empty() ? "there are no jobs" : fmt::format("jobs there: {}", fmt::join(others, ", "));
  return Error(Code::not_found,
               fmt::format("no job \"{}\" under {}; {} (another folder: --dir)", job, dir_, there));
}

Result<store::StoredVersion> Stored::version(const std::string& job, VersionNumber number) {
  BACKSTAY_ASSIGN(const auto all, versions(job));
  if (number == 0) {
    if (const auto* newest = newest_good(all)) return *newest;
    return Error(
        Code::none,
        fmt::format("{} has no complete version; `backstay ls {}` lists what there is", job, job));
  }
  for (const auto& one : all)
    if (one.version == number) return one;
  std::vector<VersionNumber> numbers;
  for (const auto& one : all) numbers.push_back(one.version);
  return Error(Code::not_found, fmt::format("{} has no version {}; there are {}", job, number,
                                            fmt::join(numbers, ", ")));
}

Result<std::vector<NodeId>> Stored::nodes(const std::string& job, VersionNumber version) {
  BACKSTAY_ASSIGN(const auto names, tier_->list(format::version_folder(job, version)));
  std::vector<NodeId> nodes;
  for (const std::string& name : names)
    if (const auto node = format::node_of_manifest(name)) nodes.push_back(*node);
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

std::string state_text(const store::StoredVersion& version) {
  if (!version.damage.empty()) return "damaged";
  return version.good() ? "complete" : "incomplete";
}

bool counts_one_node(const store::StoredVersion& version) {
  return version.record.nodes > 1 && version.level != Level::durable;
}

const store::StoredVersion* newest_good(const std::vector<store::StoredVersion>& versions) {
  const auto found =
      std::find_if(versions.rbegin(), versions.rend(), [](const auto& v) { return v.good(); });
  return found == versions.rend() ? nullptr : &*found;
}

Result<NodeReader> NodeReader::open(tier::Tier& tier, const format::Manifest& manifest) {
  NodeReader reader(tier, manifest);
  BACKSTAY_TRY(reader.segments_.open());
  return reader;
}

// Whole pages around the wanted bytes, chunk by chunk.
Result<Buffer> NodeReader::read(const format::ObjectEntry& object, std::uint64_t offset,
                                std::uint64_t length) {
  Buffer out;
  for (const format::ChunkEntry& chunk : manifest_->chunks_of(object)) {
    const std::uint64_t first = std::max(offset, chunk.object_offset);
    const std::uint64_t last = std::min(offset + length, chunk.object_offset + chunk.length);
    if (first >= last) continue;
    const std::uint64_t inside = first - chunk.object_offset, begin = inside / page * page;
    const std::uint64_t end = (last - chunk.object_offset + page - 1) / page * page;
    AlignedMemory memory(end - begin);
    BACKSTAY_ASSIGN(tier::Reader* const reader, segments_.segment_of(chunk));
    reader->read(chunk.segment_offset + begin, memory.span(), 0);
    while (reader->in_flight() > 0)
      for (const tier::Done& done : reader->reap(true)) BACKSTAY_TRY(done.status);
    const auto piece = memory.span().subspan(inside - begin, last - first);
    out.insert(out.end(), piece.begin(), piece.end());
  }
  if (out.size() != length) return Error(Code::corrupt, "the chunks do not cover the object");
  return out;
}

Result<Buffer> NodeReader::footer(const format::ObjectEntry& object) {
  if (object.bytes < format::object_footer_bytes)
    return Error(Code::corrupt, "the object is shorter than its footer");
  return read(object, object.bytes - format::object_footer_bytes, format::object_footer_bytes);
}

Result<NodeReader::Tail> NodeReader::tail(const format::ObjectEntry& object) {
  BACKSTAY_ASSIGN(const Buffer last, footer(object));
  Tail tail;
  BACKSTAY_ASSIGN(tail.footer, format::decode_footer(last, object.bytes, object.id.kind));
  BACKSTAY_ASSIGN(tail.table, read(object, tail.footer.table_offset, tail.footer.table_bytes));
  return tail;
}

Result<format::Table> NodeReader::table(const format::ObjectEntry& object) {
  BACKSTAY_ASSIGN(const Tail found, tail(object));
  return format::decode_table(found.table, found.footer);
}

Result<std::optional<image::Image>> NodeReader::image(const format::ObjectEntry& object) {
  if (object.id.kind != format::ObjectKind::regions) return std::optional<image::Image>();
  BACKSTAY_ASSIGN(const Buffer last, footer(object));
  if (!format::is_image(last)) return std::optional<image::Image>();
  BACKSTAY_ASSIGN(const image::Footer found, image::decode_footer(last, object.bytes));
  BACKSTAY_ASSIGN(const Buffer table, read(object, found.table_offset, found.table_bytes));
  BACKSTAY_ASSIGN(image::Image image, image::decode_table(table, found));
  return std::optional<image::Image>(std::move(image));
}

Result<std::vector<format::Stream>> NodeReader::streams(const format::ObjectEntry& object,
                                                        const format::Table& table) {
  const format::Region* const all = format::find_streams(table);
  if (all == nullptr) return std::vector<format::Stream>();
  if (all->bytes < format::streams_trailer_bytes)
    return Error(Code::corrupt, "the streams are too short to have an index");
  BACKSTAY_ASSIGN(const Buffer last,
                  read(object, all->offset + all->bytes - format::streams_trailer_bytes,
                       format::streams_trailer_bytes));
  BACKSTAY_ASSIGN(const auto trailer, format::decode_streams_trailer(last, all->bytes));
  BACKSTAY_ASSIGN(const Buffer index,
                  read(object, all->offset + trailer.index_offset, trailer.index_bytes));
  return format::decode_streams(index, trailer);
}

Result<std::vector<format::CapturedFile>> NodeReader::files(const format::ObjectEntry& object) {
  BACKSTAY_ASSIGN(const Tail found, tail(object));
  return format::decode_files(found.table, found.footer);
}

}  // namespace backstay::bin
