// What the tables and marks of versions say: which files are at home, and which are to come.
#include <map>
#include <string_view>
#include <utility>

#include "agent/home/home_plan.h"

namespace backstay::agent {

void HomePlan::take(const FilesLookedAt& answer, std::uint64_t now_ns) {
  const auto at = versions_.find(answer.version);
  if (at == versions_.end()) return;
  Version& version = at->second;
  if (!answer.found.ok()) {
    fail(answer.version, version, answer.found.error(), now_ns);
    return finish();
  }
  version.stage = Stage::known;
  version.trouble.reset();
  version.tries = 0;
  version.next_ns = 0;
  const FilesFound& found = *answer.found;
  version.dirty = !found.marked && !found.files.empty();
  std::map<std::string_view, const format::FileNotHome*> marked;
  for (const format::FileNotHome& file : found.not_home) marked.emplace(file.path, &file);
  for (const FileInVersion& file : found.files) {
    const auto at_mark = marked.find(file.path);
    const auto* as_marked = at_mark == marked.end() ? nullptr : at_mark->second;
    take_file(answer.version, file, found.marked, as_marked);
  }
  finish();
}

// The program may have renamed the file before its table was known. A file that an agent before
// this one has brought is not brought again, though no mark says so: its program may have renamed
// or removed it since.
void HomePlan::take_file(VersionNumber number, FileInVersion file, bool marked,
                         const format::FileNotHome* as_marked) {
  Version& version = versions_.at(number);
  const auto at = version.moved.find(file.path);
  const Moved* moved = at == version.moved.end() ? nullptr : &at->second;
  const bool elsewhere = moved != nullptr && !moved->to.empty();
  const bool home = marked && as_marked == nullptr;
  const bool stands = !home && !elsewhere && !file.stands_at.empty();
  std::string named;
  const auto comes_to = [&](const std::string& path, std::uint64_t placed_ns) {
    if (path == file.path) return;
    named = std::exchange(file.path, path);
    file.placed_ns = placed_ns;
  };
  if (elsewhere) {
    comes_to(moved->to, moved->placed_ns);
  } else if (stands) {
    comes_to(file.stands_at, file.stands_ns);
  } else if (moved != nullptr) {
    comes_to(moved->from, moved->placed_ns);
  }
  add(number, file, named, marked, as_marked);
  const Key key{file.placed_ns, number, version.files.size() - 1};
  if (stands) {
    unschedule(key);
    change(key, State::brought);
    version.needs_mark();
    overtake(file.path, key);
  } else if (moved != nullptr && !elsewhere) {
    (void)move_file(key, *moved);
  }
}

void HomePlan::add(VersionNumber number, const FileInVersion& found, const std::string& named,
                   bool marked, const format::FileNotHome* as_marked) {
  Version& version = versions_.at(number);
  const Key key{found.placed_ns, number, version.files.size()};
  const auto path = paths_.try_emplace(found.path).first;
  version.files.push_back(
      {.path = path, .placed_ns = found.placed_ns, .bytes = found.bytes, .named = named});
  ++version.open;
  ++version.untried;
  if (marked && as_marked == nullptr) change(key, State::home);
  if (as_marked != nullptr) {
    const bool kept = as_marked->how == format::NotHome::kept;
    version.files.back().why = as_marked->why;
    change(key, kept ? State::kept : State::waiting, Code::again);
  }
  put_at_path(key);
}

}  // namespace backstay::agent
