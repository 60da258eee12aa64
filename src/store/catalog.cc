#include "store/catalog.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/notice.h"
#include "format/names.h"

namespace backstay::store {

namespace {

constexpr std::uint64_t damage_bytes_max = 4096;

std::string first_line(const Buffer& text) {
  const std::string whole(reinterpret_cast<const char*>(text.data()), text.size());
  const std::string line = whole.substr(0, whole.find('\n'));
  return line.empty() ? "set aside without a reason" : line;
}

Result<format::CommitRecord> read_commit(tier::Tier& tier, const std::string& job,
                                         VersionNumber version, Level level) {
  const std::string name = format::commit_name(format::version_folder(job, version), level);
  BACKSTAY_ASSIGN(const Buffer bytes, tier.get(name, format::commit_record_bytes));
  BACKSTAY_ASSIGN(const format::CommitRecord record, format::decode_commit(bytes));
  if (record.job != job || record.version != version || record.level != level) {
    return Error(Code::corrupt, "the commit record belongs to another version");
  }
  return record;
}

// The record of the highest level that is good here: each proves that the version exists.
// Errors: not_found (none has one), or why the highest one cannot be read.
Result<format::CommitRecord> read_commit(tier::Tier& tier, const std::string& job,
                                         VersionNumber version) {
  std::optional<Error> bad;
  for (const Level level : {Level::durable, Level::protected_, Level::local}) {
    auto record = read_commit(tier, job, version, level);
    if (record.ok()) return record;
    if (!is_damage_or_gone(record.error().code())) return record;  // the trouble may pass
    if (!bad && record.error().code() != Code::not_found) bad = record.error();
  }
  return bad.value_or(Error(Code::not_found, "it has no commit record"));
}

template <typename T>
bool is_missing(const Result<T>& read) {
  return !read.ok() && read.error().code() == Code::not_found;
}

// Calls `read` once more where it fails, as the trouble may pass.
template <typename Read>
auto read_twice(const Read& read) {
  auto first = read();
  return first.ok() || is_missing(first) ? first : read();
}

void cannot_be_read(StoredVersion& stored, const Error& why) {
  stored.damage = why.message();
  if (!is_damage_or_gone(why.code())) stored.unreadable = why;
}

}  // namespace

StoredVersion look_at(tier::Tier& tier, const std::string& job, VersionNumber version) {
  StoredVersion stored;
  stored.version = version;
  const std::string folder = format::version_folder(job, version);
  const auto mark = read_twice(
      [&] { return tier.get(folder + "/" + std::string(format::damaged_name), damage_bytes_max); });
  if (mark.ok()) stored.damage = first_line(*mark);
  if (!is_missing(mark) && !mark.ok()) cannot_be_read(stored, mark.error());
  const auto record = read_twice([&] { return read_commit(tier, job, version); });
  // A mark without a version is the rest of one that was removed.
  if (is_missing(record)) return {.version = version};
  if (!record.ok()) {
    // It was committed once, so it is damaged, not garbage: nothing removes it silently.
    cannot_be_read(stored, record.error());
    return stored;
  }
  stored.level = record->level;
  stored.record = *record;
  return stored;
}

namespace {

// Calls `with` for each good manifest of a run of several nodes in the version's folder. Fails
// where a read failed that may succeed later: such a manifest may be there, and was not seen.
template <typename With>
Status each_part(tier::Tier& tier, const std::string& job, VersionNumber version,
                 const With& with) {
  const std::string folder = format::version_folder(job, version);
  const auto names = read_twice([&] { return tier.list(folder); });
  Status status;
  const auto failed = [&](const Error& why) {
    if (!is_damage_or_gone(why.code())) status = why;
  };
  if (!names.ok()) return failed(names.error()), status;
  for (const std::string& name : *names) {
    if (!format::node_of_manifest(name)) continue;
    Buffer bytes;
    const auto manifest = read_twice([&]() -> Result<format::Manifest> {
      BACKSTAY_ASSIGN(bytes, tier.get(folder + "/" + name, format::manifest_bytes_max));
      return format::decode_manifest(bytes);
    });
    if (!manifest.ok()) {
      failed(manifest.error());
    } else if (manifest->nodes >= 2 && manifest->version == version) {
      with(*manifest, bytes);
    }
  }
  return status;
}

}  // namespace

bool find_in_doubt(tier::Tier& tier, const std::string& job, StoredVersion& stored) {
  StoredVersion found{.version = stored.version};
  const auto add = [&](const format::Manifest& manifest, const Buffer& bytes) {
    found.record = format::record_of(manifest, bytes);
    found.in_doubt = true;
    found.parts.push_back(manifest.node);
    found.needs = format::both_needs(found.needs, manifest.needs);
  };
  if (const Status status = each_part(tier, job, stored.version, add); !status.ok()) {
    cannot_be_read(stored, status.error());
    return false;
  }
  stored = std::move(found);
  return stored.in_doubt;
}

std::vector<format::Need> needs_there(tier::Tier& tier, const std::string& job,
                                      const StoredVersion& stored) {
  std::vector<format::Need> needs = stored.record.needs;
  if (stored.record.nodes == 1 || stored.record.level == Level::durable) return needs;
  const auto add = [&](const format::Manifest& manifest, const Buffer&) {
    if (manifest.run == stored.record.run) needs = format::both_needs(needs, manifest.needs);
  };
  (void)each_part(tier, job, stored.version, add).ok();  // a part without manifest needs nothing
  return needs;
}

VersionNumber counted_to(const std::vector<StoredVersion>& versions) {
  VersionNumber newest = 0;
  for (const StoredVersion& stored : versions) {
    if (stored.level != Level::none) newest = std::max(newest, stored.version);
  }
  return newest + numbers_skipped_max;
}

Result<std::vector<StoredVersion>> scan(tier::Tier& tier, const std::string& job,
                                        std::vector<std::string>* ignored) {
  BACKSTAY_ASSIGN(const std::vector<std::string> names, tier.list(job));
  std::vector<StoredVersion> found;
  for (const std::string& name : names) {
    if (const auto version = format::version_of_folder(name)) {
      found.push_back(look_at(tier, job, *version));
    } else if (ignored != nullptr && format::looks_like_version(name)) {
      ignored->push_back(name);
    }
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.version < b.version; });
  const VersionNumber counted = counted_to(found);
  std::erase_if(found, [&](const StoredVersion& stored) {
    const bool stray =
        stored.version > counted && stored.level == Level::none && !stored.damage.empty();
    if (stray && ignored != nullptr) ignored->push_back(format::folder_name(stored.version));
    return stray;
  });
  return found;
}

namespace {

void remove_garbage(tier::Tier& tier, const std::string& job, VersionNumber version) {
  notice(Weight::info, "remove the rest of an unfinished version job={} version={}", job, version);
  const Status status = tier.remove(format::version_folder(job, version));
  if (!status.ok()) notice(Weight::warn, "cannot remove it: {}", status.error().to_string());
}

}  // namespace

bool exists(tier::Tier& tier, const std::string& job, StoredVersion& stored) {
  return stored.level != Level::none || !stored.damage.empty() ||
         find_in_doubt(tier, job, stored) || stored.unreadable;
}

Result<std::vector<StoredVersion>> scan_for_agent(tier::Tier& tier, const std::string& job,
                                                  bool clean) {
  std::vector<std::string> ignored;
  BACKSTAY_ASSIGN(std::vector<StoredVersion> found, scan(tier, job, &ignored));
  for (const std::string& name : ignored) {
    notice(Weight::warn,
           "not a version of ours, ignored job={} folder={} (remove it, or give it another name)",
           job, name);
  }
  // The number of an unfinished version is not used again, but a folder that just has a large
  // number must not use up those that are left.
  const VersionNumber counted = counted_to(found);
  std::erase_if(found, [&](StoredVersion& stored) {
    const bool garbage = !exists(tier, job, stored);
    if (garbage && clean) remove_garbage(tier, job, stored.version);
    if (stored.level != Level::none) stored.needs = needs_there(tier, job, stored);
    return garbage && stored.version > counted;
  });
  return found;
}

Result<format::Manifest> read_manifest(tier::Tier& tier, const std::string& job,
                                       const format::CommitRecord& record, NodeId node) {
  const std::string name = format::manifest_name(format::version_folder(job, record.version), node);
  BACKSTAY_ASSIGN(const Buffer bytes, tier.get(name, format::manifest_bytes_max));
  BACKSTAY_ASSIGN(format::Manifest manifest, format::decode_manifest(bytes));
  if (manifest.job != job || manifest.version != record.version || manifest.node != node ||
      manifest.run != record.run || manifest.ranks != record.ranks) {
    return Error(Code::corrupt, name + " belongs to another version");
  }
  if (record.nodes == 1 && format::manifest_digest(bytes) != record.manifests_sum) {
    return Error(Code::corrupt, name + " is not the one that was committed");
  }
  return manifest;
}

Status set_aside(tier::Tier& tier, const std::string& job, VersionNumber version,
                 const std::string& why) {
  const std::string text = why.substr(0, damage_bytes_max - 1) + "\n";
  return tier.put(format::version_folder(job, version) + "/" + std::string(format::damaged_name),
                  std::as_bytes(std::span(text)));
}

}  // namespace backstay::store
