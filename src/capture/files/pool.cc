#include "capture/files/pool.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "capture/files/ask.h"
#include "capture/files/capture.h"
#include "capture/files/pattern.h"
#include "capture/files/pool_start.h"
#include "capture/files/raw.h"
#include "capture/files/settings.h"

namespace backstay::files {
namespace {

PoolSettings settings;
std::atomic<const PendingPage*> page;
// Where there was none to map: looked for again once something starts a collector.
std::atomic<bool> out_of_pool;
std::atomic<bool> told;  // that no collector answers

const PendingPage* map_page() {
  char path[sizeof(settings.socket) + sizeof(page_suffix)];
  std::snprintf(path, sizeof(path), "%s%s", settings.socket, page_suffix);
  const int fd = raw::openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  struct stat found = {};
  const bool whole =
      raw::fstat(fd, &found) == 0 && found.st_size >= static_cast<off_t>(sizeof(PendingPage));
  const long at =
      whole ? raw::call(SYS_mmap, nullptr, sizeof(PendingPage), PROT_READ, MAP_SHARED, fd, 0) : -1;
  raw::close(fd);
  return at > 0 || at < -4095 ? reinterpret_cast<const PendingPage*>(at) : nullptr;
}

// The page of the present collector; null: there is none, and so nothing is pending. Pages of
// collectors that have ended stay mapped, as another thread may be reading.
const PendingPage* present_page() {
  const PendingPage* mapped = page.load();
  if (mapped != nullptr && mapped->ended.load() == 0) return mapped;
  if (settings.socket[0] == '\0') return nullptr;
  mapped = map_page();
  if (mapped != nullptr) page.store(mapped);
  return mapped != nullptr && mapped->ended.load() == 0 ? mapped : nullptr;
}

// --- asking --------------------------------------------------------------------------------------

int connect_once() {
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, settings.socket, sizeof(address.sun_path));
  const auto fd = static_cast<int>(
      raw::call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd < 0) return fd;
  const long failed = raw::call(SYS_connect, fd, &address, sizeof(address));
  if (failed == 0) return fd;
  raw::close(fd);
  return static_cast<int>(failed);
}

constexpr int step_ms = 20;

// The collector's queue of connections may be full for a moment.
int connect_patiently(Asker&) {
  int fd = connect_once();
  for (int waited = 0; fd == -EAGAIN && waited < silence_ms_max; waited += step_ms) {
    raw::wait_on(-1, 0, step_ms);
    fd = connect_once();
  }
  return fd;
}

// One that was killed a moment ago may still have the lock of the page, and then a new one ends at
// once.
int connect_or_start(Asker& asker) {
  constexpr int attempts = 100;
  const auto gone = [](int fd) { return fd == -ECONNREFUSED || fd == -ENOENT; };
  int fd = connect_patiently(asker);
  for (int attempt = 0; attempt < attempts && gone(fd); ++attempt) {
    if (attempt > 0) raw::wait_on(-1, 0, step_ms);
    if (!start_collector(settings)) return fd;
    fd = connect_patiently(asker);
  }
  return fd;
}

bool tell_words(Asker&, const Answer& answer) {
  if (answer.said == Said::words) tell("", {answer.words, answer.bytes}, "");
  return true;
}

Asker asker = {.connect = connect_or_start, .hear = tell_words};

// Returns an error number, and tells people once if no collector has answered.
int settled(const Answered& answered) {
  if (answered.way == Way::answered) return answered.error;
  if (!told.exchange(true)) {
    tell(
        "the collector of captured files does not answer and cannot be started: files that were "
        "closed a moment ago may not be at their places yet; `backstay ls --files` says which",
        "", "");
  }
  return EIO;
}

}  // namespace

void stay_out_of_pool() { out_of_pool.store(true); }

void start_pool() {
  settings = read_pool_settings();
  if (settings.socket[0] != '\0') page.store(map_page());
}

static bool may_go_to_pool(const Finished& finished) {
  return settings.socket[0] != '\0' && !out_of_pool.load() &&
         may_take(finished.memory, settings.bytes_min);
}

bool keep_in_pool(const Finished& finished, std::uint64_t synced) {
  if (!may_go_to_pool(finished)) return false;
  const Until until = settings.until_local ? Until::local : Until::captured;
  const Answered kept = keep(asker, finished, until, synced);
  if (kept.way == Way::gone) settled(settle_taken(asker, finished));
  return kept.well();
}

int make_hold() {
  char folder[sizeof(settings.socket)];
  std::strcpy(folder, settings.socket);
  char* slash = std::strrchr(folder, '/');
  if (slash == nullptr) return -ENOENT;
  slash[slash == folder ? 1 : 0] = '\0';
  return make_hold(folder);
}

std::uint64_t sync_in_pool(const Finished& finished, int hold) {
  if (!settings.sync_local || !may_go_to_pool(finished)) return 0;
  const Answered synced = sync(asker, finished, hold);
  return synced.well() ? synced.version : 0;
}

void let_go_in_pool(std::uint64_t synced) { settled(let_go(asker, synced)); }

bool is_anything_pending() {
  const PendingPage* mapped = present_page();
  return mapped != nullptr && mapped->count.load() != 0;
}

bool is_pending(const struct stat& found) {
  const PendingPage* mapped = present_page();
  return mapped != nullptr && is_listed(*mapped, found.st_dev, found.st_ino);
}

bool is_awaited(const struct stat& found) {
  const PendingPage* mapped = present_page();
  return mapped != nullptr && is_listed(*mapped, found.st_dev, found.st_ino, true);
}

Renamed rename_in_pool(const struct stat& found, const struct stat& folder, const char* name) {
  Question question;
  if (std::strlen(name) > name_max) return Renamed::no;
  question.ask = Ask::rename;
  question.device = found.st_dev;
  question.inode = found.st_ino;
  question.folder_device = folder.st_dev;
  question.folder_inode = folder.st_ino;
  std::strcpy(question.name, name);
  const Answered answered = ask(asker, question);
  if (answered.well()) return Renamed::yes;
  return answered.way == Way::answered || answered.way == Way::unasked ? Renamed::no
                                                                       : Renamed::failed;
}

int settle_found(const struct stat& found, bool reads) {
  if (reads ? !is_awaited(found) : !is_pending(found)) return 0;
  return settled(settle(asker, found.st_dev, found.st_ino, reads));
}

namespace {

// Looks at the file of a path. False: no pending file can be there.
bool look_for_pending(int folder, const char* path, int flags, struct stat& found) {
  return is_anything_pending() && path != nullptr &&
         raw::fstatat(folder, path, &found, flags & AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace

int settle_path(int folder, const char* path, int flags) {
  struct stat found = {};
  if (!look_for_pending(folder, path, flags, found)) return 0;
  if (!S_ISDIR(found.st_mode)) return settle_found(found);
  settle_all();
  return 0;
}

int settle_file(int folder, const char* path, int flags, bool reads) {
  struct stat found = {};
  return look_for_pending(folder, path, flags, found) ? settle_found(found, reads) : 0;
}

static void settle_all(bool talks) {
  Question question;
  question.ask = Ask::settle_all;
  question.talks = talks ? 1 : 0;
  settled(ask_in_turn(asker, question));
}

void settle_all() {
  if (is_anything_pending()) settle_all(false);
}

void note_at_end() {
  if (settings.socket[0] == '\0' || !has_counts() || !is_owner()) return;
  Asker noting = {.connect = connect_patiently, .hear = tell_words, .ends_silent = false};
  Question question;
  question.ask = Ask::note;
  question.last = raw::getpid() == settings.root ? 1 : 0;
  ask(noting, question);
}

void settle_at_end() {
  if (settings.socket[0] == '\0') return;
  if (raw::getpid() != settings.root || !is_anything_pending()) return note_at_end();
  settle_all(true);
}

}  // namespace backstay::files
