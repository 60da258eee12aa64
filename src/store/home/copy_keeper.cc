#include "store/home/copy_keeper.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "base/failpoint.h"
#include "base/folders.h"
#include "format/names.h"
#include "store/home/home_mark.h"
#include "store/home/version_files.h"
#include "store/version_copy.h"

namespace backstay::store {

namespace {

constexpr NodeId files_node = 0;  // a files job has one node

}  // namespace

Result<bool> nothing_waits(tier::Tier& tier, const format::CommitRecord& record) {
  BACKSTAY_ASSIGN(const auto mark, read_home_mark(tier, record, files_node));
  return mark && std::ranges::none_of(mark->files, [](const format::FileNotHome& file) {
           return file.how == format::NotHome::waits;
         });
}

Result<CopyKeeper::Round> CopyKeeper::round() {
  BACKSTAY_ASSIGN(const auto theirs, scan(theirs_, world_.job));
  Round round;
  for (const StoredVersion& version : theirs) {
    if (!version.good()) continue;
    const auto at_home = nothing_waits(theirs_, version.record);
    if (at_home.ok() && *at_home) continue;
    ++round.waiting;
    const Status kept = at_home.ok() ? keep(version) : Status(at_home.error());
    if (theirs_.broken()) return *theirs_.broken();
    if (kept.ok()) ++round.copies;
    if (!kept.ok())
      round.troubles.push_back(fmt::format("version {} of {} has no copy: {}", version.version,
                                           world_.job, kept.error().message()));
  }
  const Status tidied = tidy(theirs);
  if (theirs_.broken()) return *theirs_.broken();
  if (!tidied.ok()) round.troubles.push_back(tidied.error().message());
  return round;
}

Status CopyKeeper::keep(const StoredVersion& version) {
  BACKSTAY_ASSIGN(const bool there, make_way(*world_.tier, version.record));
  if (!there) {
    BACKSTAY_ASSIGN(const CopyNote note, note_of(version));
    failpoint("keeper.1");
    BACKSTAY_TRY(write_note(*world_.tier, world_.job, version.version, note));
    failpoint("keeper.2");
    BACKSTAY_TRY(copy(version));
    failpoint("keeper.3");
  }
  if (version.level >= Level::protected_) return {};
  // Of a keeper that died the names may not be safe.
  if (there) BACKSTAY_TRY(make_safe(*world_.tier, version.record));
  return tell(version);
}

// Errors: unsupported (a folder is not the same one on both hosts).
Result<CopyNote> CopyKeeper::note_of(const StoredVersion& version) {
  BACKSTAY_ASSIGN(const auto files, VersionFiles::open(theirs_, version.record, files_node));
  CopyNote note{world_.host, {}};
  for (const auto& [path, entry] : files->files()) {
    const std::string folder = parent_of(path);
    if (note.folders.contains(folder)) continue;
    const Bytes name = std::as_bytes(std::span(folder));
    BACKSTAY_ASSIGN(const LineMessage answer,
                    theirs_.ask(line_question("folder", {}, {name.begin(), name.end()})));
    const FolderFacts there{.inode = answer.head.value("inode", std::uint64_t{0}),
                            .born_ns = answer.head.value("born_ns", std::uint64_t{0})};
    BACKSTAY_ASSIGN(const FolderFacts here, world_.look_at_folder(folder));
    if (!same_folder(here, there))
      return Error(Code::unsupported,
                   fmt::format("{} here is not the folder that {} has", folder, world_.host));
    note.folders[folder] = there;
  }
  return note;
}

Status CopyKeeper::copy(const StoredVersion& version) {
  VersionCopy copy(theirs_, *world_.tier, *world_.clock,
                   {version.record, Level::local, world_.bytes_per_s});
  while (!copy.done()) {
    if (const Status step = copy.step(); !step.ok()) {
      (void)copy.remove_rest().ok();  // else the next round does
      return step;
    }
    if (const std::uint64_t until = copy.rests_until_ns(); until != 0)
      ::poll(nullptr, 0, milliseconds_until(until));
  }
  return {};
}

Status CopyKeeper::tell(const StoredVersion& version) {
  const auto heard = theirs_.ask(
      line_question("copied", {{"version", version.version}, {"run", version.record.run}}));
  failpoint("keeper.4");
  if (heard.ok()) return {};
  // The owner's agent may have ended, or brings a file to another name than the copy has: the next
  // round tells it again.
  const Code code = heard.error().code();
  const bool later = code == Code::not_found || code == Code::agent_lost || code == Code::state;
  return later ? Status() : heard.error();
}

// Removes copies of what is at home, or was removed.
Status CopyKeeper::tidy(const std::vector<StoredVersion>& theirs) {
  BACKSTAY_ASSIGN(const auto ours, scan(*world_.tier, world_.job));
  for (const StoredVersion& copy : ours) {
    const auto same = std::ranges::find(theirs, copy.version, &StoredVersion::version);
    bool gone = false;
    if (same == theirs.end()) {
      gone = !theirs.empty() && theirs.back().version > copy.version;
    } else if (copy.level == Level::none || same->record.run == copy.record.run) {
      if (!same->good()) continue;
      BACKSTAY_ASSIGN(gone, nothing_waits(theirs_, same->record));
    }
    if (!gone) continue;
    BACKSTAY_TRY(world_.tier->remove(format::version_folder(world_.job, copy.version)));
  }
  return {};
}

}  // namespace backstay::store
