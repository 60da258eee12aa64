#include "agent/disk/peer_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checksum.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "format/names.h"
#include "store/catalog.h"

namespace backstay::agent {

namespace {

constexpr std::uint64_t idle_ns = 1'000'000'000;
constexpr std::size_t readings_max = 16;  // open files

template <typename Manifest>
struct Found {
  Buffer bytes;
  Manifest manifest;
};
using FoundManifest = Found<format::Manifest>;
using FoundParity = Found<format::ParityManifest>;

// The manifest of `file`. Errors: not_found (also where it is another run's), corrupt, format, io.
template <typename Manifest>
Result<Found<Manifest>> find_decoded(tier::Tier& tier, const std::string& job, const FileOf& file,
                                     Result<Manifest> (*decode)(Bytes)) {
  const std::string name = store::names_of(job, file).manifest;
  Found<Manifest> found;
  BACKSTAY_ASSIGN(found.bytes, tier.get(name, format::manifest_bytes_max));
  BACKSTAY_ASSIGN(found.manifest, decode(found.bytes));
  if (found.manifest.job != job || found.manifest.version != file.version ||
      found.manifest.node != file.node) {
    return Error(Code::corrupt, name + " belongs to another version");
  }
  if (found.manifest.run != file.run) {
    return Error(Code::not_found, name + " is of another run with the same version number");
  }
  return found;
}

Result<FoundManifest> find_manifest(tier::Tier& tier, const std::string& job, const FileOf& file) {
  return find_decoded(tier, job, file, format::decode_manifest);
}

Result<FoundParity> find_parity(tier::Tier& tier, const std::string& job, const FileOf& file) {
  return find_decoded(tier, job, file, format::decode_parity_manifest);
}

HeldFile with_record(HeldFile held, const StoredVersion& stored) {
  const bool same = stored.level != Level::none && stored.record.run == held.file.run;
  if (same) held.record = stored.record;
  return held;
}

// Every checksum that covers bytes of [offset, offset + memory) only. The user of what is
// made of it checks the edges.
Status check_parity(const format::ParityManifest& parity, std::uint64_t offset, Bytes memory) {
  std::uint64_t at = offset;
  const std::uint64_t end = offset + memory.size();
  while (at < end) {
    const std::uint64_t block = at / parity.block_bytes;
    const std::uint64_t in_block = at % parity.block_bytes;
    const std::uint64_t index = in_block / parity.checked_bytes;
    const std::uint64_t begin = block * parity.block_bytes + index * parity.checked_bytes;
    const std::uint64_t next =
        std::min(begin + parity.checked_bytes, (block + 1) * parity.block_bytes);
    if (begin == at && next <= end) {
      const std::uint64_t which = block * parity.checksums_of_block() + index;
      const bool known = which < parity.checksums.size();
      if (!known || checksum(memory.subspan(at - offset, next - at)) != parity.checksums[which]) {
        return Error(
            Code::corrupt,
            fmt::format("parity: bytes {} to {} do not match their checksum", at, next - 1));
      }
    }
    at = next;
  }
  return {};
}

}  // namespace

PeerFileWorker::PeerFileWorker(std::string job, MakeTier make_tier, PostEvent post_event,
                               const Clock& clock)
    : job_(std::move(job)),
      make_tier_(std::move(make_tier)),
      post_event_(std::move(post_event)),
      clock_(clock) {}

PeerFileWorker::~PeerFileWorker() = default;

void PeerFileWorker::handle(PeerFileCommand command) {
  std::visit([this](auto& one) { handle(one); }, command);
}

template <typename Done>
Done PeerFileWorker::posted(Done done) {
  return [this, done = std::move(done)](auto value) mutable {
    answer(std::move(done), std::move(value));
  };
}

Status PeerFileWorker::open_tier() {
  if (tier_) return {};
  BACKSTAY_ASSIGN(tier_, make_tier_());
  return {};
}

// --- what is there -------------------------------------------------------------------------------

void PeerFileWorker::handle(ListFiles& command) { answer(std::move(command.done), list()); }

Result<std::vector<HeldFile>> PeerFileWorker::list() {
  BACKSTAY_TRY(open_tier());
  BACKSTAY_ASSIGN(const auto names, tier_->list(job_));
  std::vector<HeldFile> found;
  for (const std::string& name : names) {
    if (const auto version = format::version_of_folder(name)) list_version(*version, found);
  }
  std::ranges::sort(found, {}, &HeldFile::file);
  return found;
}

// What cannot be read counts as not there: others may have it.
void PeerFileWorker::list_version(VersionNumber version, std::vector<HeldFile>& found) {
  const StoredVersion stored = store::look_at(*tier_, job_, version);
  const std::string folder = format::version_folder(job_, version);
  const auto names = tier_->list(folder);
  if (!stored.damage.empty() || !names.ok()) return;
  for (const std::string& name : *names) {
    const bool parity = format::node_of_parity_manifest(name).has_value();
    if (!parity && !format::node_of_manifest(name)) continue;
    auto held = look_at_file(version, name, parity);
    if (held.ok()) {
      found.push_back(with_record(std::move(*held), stored));
    } else {
      spdlog::warn("a file of a node cannot be used job={} name={}/{} error=\"{}\"", job_, folder,
                   name, held.error().to_string());
    }
  }
}

Result<HeldFile> PeerFileWorker::look_at_file(VersionNumber version, const std::string& name,
                                              bool parity) {
  const std::string folder = format::version_folder(job_, version);
  BACKSTAY_ASSIGN(const Buffer bytes, tier_->get(folder + "/" + name, format::manifest_bytes_max));
  HeldFile held;
  std::string job;
  if (parity) {
    BACKSTAY_ASSIGN(const auto manifest, format::decode_parity_manifest(bytes));
    BACKSTAY_ASSIGN(const auto members, format::decode_members(manifest));
    held = store::held_parity(manifest, members);
    job = manifest.job;
  } else {
    BACKSTAY_ASSIGN(const auto manifest, format::decode_manifest(bytes));
    held = store::held_segment(manifest);
    job = manifest.job;
  }
  const store::FileNames ours = store::names_of(job, held.file);
  if (job != job_ || held.file.version != version || ours.manifest != folder + "/" + name) {
    return Error(Code::corrupt, "it belongs to another version");
  }
  BACKSTAY_TRY(tier_->open(ours.data));
  return held;
}

// --- reading -------------------------------------------------------------------------------------

void PeerFileWorker::handle(ReadPiece& command) {
  if (command.pooled && command.pooled->read(command.offset, command.memory)) {
    return answer(std::move(command.done), Status());
  }
  const auto reading = open(command.file);
  if (!reading.ok()) return answer(std::move(command.done), Status(reading.error()));
  Reading& from = **reading;
  while (from.reader->in_flight() >= from.reader->depth()) reap(from, /*wait=*/true);
  const std::uint64_t tag = from.next_tag++;
  from.reads[tag] = {command.offset, command.memory, std::move(command.done)};
  from.reader->read(command.offset, command.memory, tag);
}

Result<PeerFileWorker::Reading*> PeerFileWorker::open(const FileOf& file) {
  if (const auto known = readings_.find(file); known != readings_.end()) {
    known->second.used_ns = clock_.monotonic_ns();
    return &known->second;
  }
  Reading opened;
  BACKSTAY_TRY(open_reader(file, opened));
  failpoint("depot.open");
  if (readings_.size() >= readings_max) {
    auto oldest = std::ranges::min_element(readings_, {},
                                           [](const auto& entry) { return entry.second.used_ns; });
    while (oldest->second.reader->in_flight() > 0) reap(oldest->second, /*wait=*/true);
    readings_.erase(oldest);
  }
  Reading& reading = readings_[file];
  reading = std::move(opened);
  reading.used_ns = clock_.monotonic_ns();
  return &reading;
}

Status PeerFileWorker::open_reader(const FileOf& file, Reading& reading) {
  BACKSTAY_TRY(open_tier());
  if (file.parity) {
    BACKSTAY_ASSIGN(FoundParity found, find_parity(*tier_, job_, file));
    found.manifest.manifests.clear();
    reading.parity = std::make_shared<const format::ParityManifest>(std::move(found.manifest));
  } else {
    BACKSTAY_TRY(find_manifest(*tier_, job_, file));
  }
  BACKSTAY_ASSIGN(reading.reader, tier_->open(store::names_of(job_, file).data));
  return {};
}

bool PeerFileWorker::reap(Reading& reading, bool wait) {
  const auto all = reading.reader->reap(wait);
  for (const tier::Done& done : all) {
    auto read = reading.reads.extract(done.tag);
    BACKSTAY_CHECK(!read.empty());
    Read one = std::move(read.mapped());
    Status status = done.status;
    if (status.ok() && reading.parity) {
      status = check_parity(*reading.parity, one.offset, one.memory);
    }
    answer(std::move(one.done), std::move(status));
  }
  return !all.empty();
}

void PeerFileWorker::handle(ReadFileManifest& command) {
  const auto read = [&]() -> Result<Buffer> {
    BACKSTAY_TRY(open_tier());
    if (command.file.parity) {
      BACKSTAY_ASSIGN(FoundParity found, find_parity(*tier_, job_, command.file));
      return std::move(found.bytes);
    }
    BACKSTAY_ASSIGN(FoundManifest found, find_manifest(*tier_, job_, command.file));
    return std::move(found.bytes);
  };
  answer(std::move(command.done), read());
}

// --- copies --------------------------------------------------------------------------------------

void PeerFileWorker::handle(OpenCopy& command) { answer(std::move(command.done), begin(command)); }

Result<std::vector<store::Piece>> PeerFileWorker::begin(OpenCopy& command) {
  BACKSTAY_TRY(open_tier());
  drop(command.file);
  auto copy = std::make_unique<store::IncomingReplica>(*tier_, job_, command.file,
                                                       std::move(command.manifest));
  store::IncomingReplica& open = *copy;
  copies_[command.file] = std::move(copy);
  auto pieces = open.open(command.segment_bytes, command.piece_bytes_max, command.replace);
  if (!pieces.ok()) drop(command.file);
  return pieces;
}

void PeerFileWorker::handle(OpenParity& command) {
  const auto open = [&]() -> Status {
    BACKSTAY_TRY(open_tier());
    const auto& manifest = command.manifest;
    const FileOf file{manifest.version, manifest.run, manifest.node, /*parity=*/true};
    drop(file);
    auto parity = std::make_unique<store::IncomingParity>(*tier_, std::move(command.manifest));
    store::IncomingParity& begun = *parity;
    copies_[file] = std::move(parity);
    Status opened = begun.open();
    if (!opened.ok()) drop(file);
    return opened;
  };
  answer(std::move(command.done), open());
}

void PeerFileWorker::handle(Compute& command) {
  command.work();
  answer(std::move(command.done), Status());
}

void PeerFileWorker::handle(WritePiece& command) {
  const auto copy = copies_.find(command.file);
  if (copy == copies_.end()) {
    return answer(std::move(command.done), Status(Error(Code::state, "no such copy is open")));
  }
  copy->second->write(command.offset, command.memory, posted(std::move(command.done)));
}

void PeerFileWorker::handle(SealCopy& command) {
  auto held = seal(command);
  if (!held.ok()) drop(command.file);
  copies_.erase(command.file);
  answer(std::move(command.done), std::move(held));
}

Result<HeldFile> PeerFileWorker::seal(const SealCopy& command) {
  const auto copy = copies_.find(command.file);
  if (copy == copies_.end()) return Error(Code::state, "no such copy is open");
  BACKSTAY_TRY(copy->second->seal(command.record));
  return with_record(copy->second->held(), store::look_at(*tier_, job_, command.file.version));
}

void PeerFileWorker::handle(SyncFile& command) {
  answer(std::move(command.done), sync(command.file));
}

Result<HeldFile> PeerFileWorker::sync(const FileOf& file) {
  BACKSTAY_TRY(open_tier());
  const store::FileNames names = store::names_of(job_, file);
  const std::string name = names.manifest.substr(names.folder.size() + 1);
  BACKSTAY_ASSIGN(HeldFile held, look_at_file(file.version, name, file.parity));
  if (held.file != file) return Error(Code::not_found, names.manifest + " is of another run");
  BACKSTAY_TRY(tier_->sync(names.folder));
  return with_record(std::move(held), store::look_at(*tier_, job_, file.version));
}

void PeerFileWorker::handle(AbandonCopy& command) { drop(command.file); }

void PeerFileWorker::drop(const FileOf& file) {
  const auto copy = copies_.find(file);
  if (copy == copies_.end()) return;
  while (copy->second->in_flight() > 0) copy->second->reap(/*wait=*/true);
  if (const Status removed = copy->second->remove_rest(); !removed.ok()) {
    spdlog::warn("the rest of a copy stays job={} version={} node={} error=\"{}\"", job_,
                 file.version, file.node, removed.error().to_string());
  }
  copies_.erase(copy);
  // Of a version that was removed meanwhile, or that nothing else is here of, the folder would
  // stay.
  const std::string folder = format::version_folder(job_, file.version);
  if (const Status tidied = tier_->remove_if_empty(folder); !tidied.ok()) {
    spdlog::warn("an empty folder stays: {}", tidied.error().to_string());
  }
}

// --- requests in flight --------------------------------------------------------------------------

bool PeerFileWorker::busy() const {
  return std::ranges::any_of(
             readings_, [](const auto& entry) { return entry.second.reader->in_flight() > 0; }) ||
         std::ranges::any_of(copies_,
                             [](const auto& entry) { return entry.second->in_flight() > 0; });
}

void PeerFileWorker::step(bool wait) {
  bool any = false;
  for (auto& [file, reading] : readings_) any = reap(reading, false) || any;
  for (auto& [file, copy] : copies_) any = copy->reap(false) || any;
  if (any || !wait) return;
  for (auto& [file, reading] : readings_) {
    if (reap(reading, /*wait=*/true)) return;
  }
  for (auto& [file, copy] : copies_) {
    if (copy->reap(/*wait=*/true)) return;
  }
}

void PeerFileWorker::close_idle() {
  const std::uint64_t now = clock_.monotonic_ns();
  std::erase_if(readings_, [now](const auto& entry) {
    return entry.second.reader->in_flight() == 0 && now >= entry.second.used_ns + idle_ns;
  });
}

std::uint64_t PeerFileWorker::closes_at_ns() const {
  std::uint64_t at = no_deadline;
  for (const auto& [file, reading] : readings_) at = std::min(at, reading.used_ns + idle_ns);
  return at;
}

}  // namespace backstay::agent
