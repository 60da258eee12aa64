#include "agent/home/home_plan.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "base/folders.h"

namespace backstay::agent {

namespace {

// How long to wait after so many tries that failed.
std::uint64_t pause_ns(unsigned tries) {
  constexpr std::uint64_t second = 1'000'000'000;
  constexpr std::uint64_t longest = 300 * second;
  constexpr unsigned doublings_max = 9;
  return std::min(longest, second << std::min(tries - 1, doublings_max));
}

// Trouble that is not the version's own.
bool may_pass(const Error& why) {
  const Code code = why.code();
  return code == Code::io || code == Code::permission || code == Code::no_space ||
         code == Code::again;
}

}  // namespace

// --- versions ------------------------------------------------------------------------------------

void HomePlan::captured(VersionNumber version) { versions_.try_emplace(version); }

void HomePlan::recorded(const format::CommitRecord& record, NodeId node, bool before) {
  Version& version = versions_[record.version];
  if (version.stage != Stage::expected) return;
  version.stage = Stage::unread;
  version.record = record;
  version.node = node;
  version.before = before;
  version.trouble.reset();
}

void HomePlan::failed(VersionNumber version, const Error& why) {
  const auto at = versions_.find(version);
  if (at == versions_.end() || at->second.stage != Stage::expected) return;
  at->second.trouble = why;
  answer_all();
}

void HomePlan::gone(VersionNumber version) {
  const auto at = versions_.find(version);
  if (at == versions_.end()) return;
  const std::vector<File>& files = at->second.files;
  for (std::size_t index = 0; index < files.size(); ++index) {
    const Key key{files[index].placed_ns, version, index};
    const auto path = files[index].path;
    unschedule(key);
    path->second.erase(key);
    if (path->second.empty()) {
      paths_.erase(path);
    } else {
      schedule(*path->second.rbegin());
    }
  }
  versions_.erase(at);
  finish();
  answer_all();
}

// A version may be removed once no other one's mark names a path whose newest file it had: after a
// crash that one would be brought. One that was not read yet may be such a one.
void HomePlan::finish() {
  const auto in_the_way = [](const auto& one) {
    const Version& version = one.second;
    const bool unread = version.stage == Stage::unread;
    return version.stale || (unread && (!version.trouble || may_pass(*version.trouble)));
  };
  if (std::ranges::any_of(versions_, in_the_way)) return;
  for (auto& [number, version] : versions_) {
    if (version.stage != Stage::known || version.dirty || version.open > 0) continue;
    if (!std::exchange(version.told, true)) news_.at_home.push_back(number);
  }
}

// --- one path ------------------------------------------------------------------------------------

// It is one of the records of its path from now on.
void HomePlan::put_at_path(const Key& key) {
  auto& [path, keys] = *file_of(key).path;
  if (!keys.empty()) unschedule(*keys.rbegin());
  keys.insert(key);
  const Key newest = *keys.rbegin();
  if (file_of(newest).state != State::waiting) overtake(path, newest);
  schedule(newest);
}

void HomePlan::change(const Key& key, State state, Code code) {
  Version& version = versions_.at(key.version);
  File& file = version.files[key.index];
  const auto count = [&](auto add) {
    if (file.state != State::home) add(version.open);
    if (file.state == State::waiting && file.code == Code::ok) add(version.untried);
  };
  count([](std::size_t& number) { --number; });
  file.state = state;
  file.code = code;
  count([](std::size_t& number) { ++number; });
}

// What is older is not to be brought any more.
void HomePlan::overtake(const std::string& path, const Key& by) {
  const auto at = paths_.find(path);
  if (at == paths_.end()) return;
  for (const Key& key : at->second) {
    if (!(key < by)) break;
    if (file_of(key).state == State::home) continue;
    unschedule(key);
    change(key, State::overtaken);
    Version& version = versions_.at(key.version);
    version.needs_mark();
    version.stale = true;
    version.held = false;
  }
}

// When the version ended. What was renamed comes in the order of its rename.
std::uint64_t HomePlan::order_of(const Key& key) const {
  const std::uint64_t ended = versions_.at(key.version).record.captured_ns;
  return file_of(key).named.empty() ? ended : std::max(ended, key.placed_ns);
}

// Only the newest of a path is brought.
void HomePlan::schedule(const Key& key) {
  const File& file = file_of(key);
  if (file.state != State::waiting) return;
  if (file.next_ns == 0) {
    ready_.emplace(order_of(key), key.version, key.index);
  } else {
    paused_.emplace(file.next_ns, key.version, key.index);
  }
}

void HomePlan::unschedule(const Key& key) {
  ready_.erase({order_of(key), key.version, key.index});
  paused_.erase({file_of(key).next_ns, key.version, key.index});
}

void HomePlan::retry_now(const Key& key) {
  if (paused_.erase({file_of(key).next_ns, key.version, key.index}) == 0) return;
  file_of(key).next_ns = 0;
  schedule(key);
}

// A program that has synced it still has it open.
void HomePlan::hold(const Key& key, const std::string& why, std::uint64_t now_ns) {
  constexpr std::uint64_t look_again_ns = 10'000'000'000;
  File& file = file_of(key);
  unschedule(key);
  change(key, State::waiting, Code::busy);
  file.tried = answers_;
  file.why = why;
  file.next_ns = is_wanted_again(key) ? 0 : now_ns + look_again_ns;
  versions_.at(key.version).held = true;
  if (*file.path->second.rbegin() == key) schedule(key);
}

void HomePlan::fail(const Key& key, const Error& why, std::uint64_t now_ns) {
  File& file = file_of(key);
  Version& version = versions_.at(key.version);
  unschedule(key);
  change(key, State::waiting, why.code());
  file.tried = answers_;
  ++file.tries;
  file.next_ns = is_wanted_again(key) ? 0 : now_ns + pause_ns(file.tries);
  if (file.why != why.message() || version.dirty) {
    if (file.why != why.message()) {
      news_.warnings.push_back({key.version, file.path->first, why.message()});
    }
    file.why = why.message();
    version.needs_mark();
  }
  if (*file.path->second.rbegin() == key) schedule(key);
}

// Its table cannot be read, or its mark not be written.
void HomePlan::fail(VersionNumber number, Version& version, const Error& why,
                    std::uint64_t now_ns) {
  if (!version.trouble || version.trouble->message() != why.message()) {
    news_.warnings.push_back({number, "", why.message()});
  }
  version.trouble = why;
  version.tried = answers_;
  version.next_ns = now_ns + pause_ns(++version.tries);
}

// --- the thread's next order ---------------------------------------------------------------------

HomeOrders HomePlan::next(std::uint64_t now_ns, std::size_t at_once_max) {
  if (works()) return {};
  (void)(marks_due(now_ns, 0, at_once_max) || look_due(now_ns) || files_due(now_ns, at_once_max) ||
         marks_due(now_ns, SIZE_MAX, at_once_max));
  HomeOrders orders;
  for (const Work& work : works_) orders.push_back(work.order);
  return orders;
}

// First of versions whose files have all had their turn. Others are waited for, as each mark costs
// the disk some syncs, until nothing else is to be done.
bool HomePlan::marks_due(std::uint64_t now_ns, std::size_t untried_max, std::size_t at_once_max) {
  for (auto& [number, version] : versions_) {
    if (works_.size() == at_once_max) break;
    const bool due = version.dirty && !version.held && version.next_ns <= now_ns &&
                     version.untried <= untried_max;
    if (!due) continue;
    version.outdated = false;
    MarkHome mark{number, {}};
    for (const File& file : version.files) {
      if (file.state != State::waiting && file.state != State::kept) continue;
      const bool kept = file.state == State::kept;
      mark.files.push_back({file.named.empty() ? file.path->first : file.named,
                            kept ? format::NotHome::kept : format::NotHome::waits,
                            file.why.empty() ? "a newer version has it" : file.why});
    }
    std::ranges::sort(mark.files, {}, &format::FileNotHome::path);
    works_.push_back({std::move(mark)});
  }
  return works();
}

bool HomePlan::look_due(std::uint64_t now_ns) {
  const auto at = std::ranges::find_if(versions_, [&](const auto& one) {
    return one.second.stage == Stage::unread && one.second.next_ns <= now_ns;
  });
  if (at == versions_.end()) return false;
  works_.push_back({LookAtFiles{at->second.record, at->second.node, at->second.before}});
  return true;
}

// Those of a turn are written before the first of them is synced, so they are not to be too large.
bool HomePlan::files_due(std::uint64_t now_ns, std::size_t at_once_max) {
  constexpr std::uint64_t bytes_max = std::uint64_t{64} << 20;
  while (!paused_.empty() && std::get<0>(*paused_.begin()) <= now_ns) {
    const auto [until, version, index] = *paused_.begin();
    retry_now({versions_.at(version).files[index].placed_ns, version, index});
  }
  std::uint64_t bytes = 0;
  for (const auto& [ended, version, index] : ready_) {
    const File& file = versions_.at(version).files[index];
    bytes += file.bytes;
    if (works_.size() == at_once_max || (works() && bytes > bytes_max)) break;
    const std::string& to = file.path->first;
    works_.push_back({BringFile{version, file.named.empty() ? to : file.named, to, file.placed_ns},
                      {file.placed_ns, version, index}});
  }
  return works();
}

const BringFile* HomePlan::on_its_way(const Key* key, const std::string& to) const {
  for (const Work& work : works_) {
    const auto* file = std::get_if<BringFile>(&work.order);
    if (file != nullptr && (file->to == to || (key != nullptr && work.key == *key))) return file;
  }
  return nullptr;
}

std::uint64_t HomePlan::wakes_at_ns() const {
  if (works()) return no_deadline;
  if (!ready_.empty()) return 0;
  std::uint64_t wakes = paused_.empty() ? no_deadline : std::get<0>(*paused_.begin());
  for (const auto& [number, version] : versions_) {
    const bool mark = version.dirty && !version.held;
    if (mark || version.stage == Stage::unread) wakes = std::min(wakes, version.next_ns);
  }
  return wakes;
}

// --- what the thread answers ---------------------------------------------------------------------

void HomePlan::on(const HomeAnswer& answer, std::uint64_t now_ns) {
  ++answers_;
  const Work work = take_work(answer);
  bool news = true;
  if (const auto* looked = std::get_if<FilesLookedAt>(&answer)) take(*looked, now_ns);
  if (const auto* marked = std::get_if<HomeMarked>(&answer)) take(*marked, now_ns);
  if (const auto* brought = std::get_if<FileBrought>(&answer)) {
    take(*brought, work.key, now_ns);
    news = ready_.empty();  // else a mark ends the pass, and says more
  }
  if (news) answer_all();
}

// The order that this is the answer to.
HomePlan::Work HomePlan::take_work(const HomeAnswer& answer) {
  const auto version_of = [](const auto& one) { return one.version; };
  const VersionNumber version = std::visit(version_of, answer);
  const auto* brought = std::get_if<FileBrought>(&answer);
  const auto at = std::ranges::find_if(works_, [&](const Work& work) {
    if (const auto* look = std::get_if<LookAtFiles>(&work.order)) {
      return std::holds_alternative<FilesLookedAt>(answer) && look->record.version == version;
    }
    if (const auto* file = std::get_if<BringFile>(&work.order)) {
      return brought != nullptr && file->version == version && file->to == brought->path;
    }
    return std::holds_alternative<HomeMarked>(answer) &&
           std::get<MarkHome>(work.order).version == version;
  });
  BACKSTAY_CHECK(at != works_.end());
  Work work = std::move(*at);
  works_.erase(at);
  return work;
}

void HomePlan::take(const FileBrought& answer, const Key& key, std::uint64_t now_ns) {
  const bool settled = answer.how != Brought::failed && answer.how != Brought::held;
  if (settled) overtake(answer.path, key);  // also where the version is gone by now
  const auto at = versions_.find(key.version);
  if (at == versions_.end()) return;
  if (answer.how == Brought::held) return hold(key, answer.why, now_ns);
  at->second.held = false;
  if (!settled) return fail(key, Error(answer.code, answer.why), now_ns);
  unschedule(key);
  File& file = file_of(key);
  at->second.needs_mark();
  file.tries = 0;
  file.next_ns = 0;
  file.why = answer.why;
  change(key, answer.how == Brought::kept ? State::kept : State::brought);
  if (answer.how == Brought::kept) {
    news_.warnings.push_back({key.version, answer.path, answer.why});
  }
}

void HomePlan::take(const HomeMarked& answer, std::uint64_t now_ns) {
  const auto at = versions_.find(answer.version);
  if (at == versions_.end()) return;
  Version& version = at->second;
  if (!answer.status.ok()) return fail(answer.version, version, answer.status.error(), now_ns);
  version.trouble.reset();
  version.tries = 0;
  version.next_ns = 0;
  if (!answer.unsynced.empty()) return unsynced(answer, version, now_ns);
  if (version.outdated) return;  // a file was called back meanwhile: the next mark says so
  version.dirty = version.stale = false;
  for (std::size_t index = 0; index < version.files.size(); ++index) {
    const File& file = version.files[index];
    if (file.state != State::brought && file.state != State::overtaken) continue;
    change({file.placed_ns, answer.version, index}, State::home);
  }
  finish();
}

// A second sync that succeeds proves nothing: the files are brought again.
void HomePlan::unsynced(const HomeMarked& answer, Version& version, std::uint64_t now_ns) {
  for (std::size_t index = 0; index < version.files.size(); ++index) {
    const File& file = version.files[index];
    if (file.state != State::brought) continue;
    const auto why = answer.unsynced.find(parent_of(file.path->first));
    if (why == answer.unsynced.end()) continue;
    fail({file.placed_ns, answer.version, index}, why->second, now_ns);
  }
}

// --- what may be said ----------------------------------------------------------------------------

bool HomePlan::is_left(VersionNumber number) const {
  const auto at = versions_.find(number);
  if (at == versions_.end() || is_called_back(at->second)) return false;
  return at->second.trouble || std::ranges::any_of(at->second.files, [](const File& file) {
           return file.state == State::kept ||
                  (file.state == State::waiting && file.code != Code::ok);
         });
}

HomePlan::Counts HomePlan::counts() const {
  Counts counts;
  for (const auto& [number, version] : versions_) {
    if (version.stage != Stage::known || version.open > 0) ++counts.versions;
    for (const File& file : version.files) {
      if (file.state == State::home) continue;
      ++(file.state == State::kept ? counts.kept : counts.waiting);
      if (file.state != State::kept) counts.waiting_bytes += file.bytes;
      const bool tried = file.code != Code::ok && file.code != Code::busy;
      if (file.state == State::waiting && tried) ++counts.failed;
    }
  }
  return counts;
}

std::string HomePlan::on_its_way() const {
  const auto* file = works() ? std::get_if<BringFile>(&works_.front().order) : nullptr;
  return file == nullptr ? "" : file->to;
}

}  // namespace backstay::agent
