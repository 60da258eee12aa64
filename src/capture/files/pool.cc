#include "capture/files/pool.h"

#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "capture/files/capture.h"
#include "capture/files/collect.h"
#include "capture/files/counts.h"
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
std::atomic<bool> told;         // that no collector answers
std::atomic<long> quiet_until;  // no file is kept before: the collector was silent

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

// --- one question -------------------------------------------------------------------------------

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

int wait_on(int fd, short events, int milliseconds) {
  struct pollfd look = {fd, events, 0};
  struct timespec limit = {milliseconds / 1000, (milliseconds % 1000) * 1'000'000L};
  return static_cast<int>(raw::call(SYS_ppoll, &look, fd < 0 ? 0 : 1, &limit, nullptr, 0));
}

// The collector's queue of connections may be full for a moment.
int connect_patiently() {
  constexpr int step_ms = 20;
  int fd = connect_once();
  for (int waited = 0; fd == -EAGAIN && waited < silence_ms_max; waited += step_ms) {
    wait_on(-1, 0, step_ms);
    fd = connect_once();
  }
  return fd;
}

// One that was killed a moment ago may still have the lock of the page, and then a new one ends at
// once.
int connect_or_start() {
  constexpr int step_ms = 20;
  constexpr int attempts = 100;
  const auto gone = [](int fd) { return fd == -ECONNREFUSED || fd == -ENOENT; };
  int fd = connect_patiently();
  for (int attempt = 0; attempt < attempts && gone(fd); ++attempt) {
    if (attempt > 0) wait_on(-1, 0, step_ms);
    if (!start_collector(settings)) return fd;
    fd = connect_patiently();
  }
  return fd;
}

bool send_question(int to, const Question& question, const int* descriptors, int count) {
  struct iovec part = {const_cast<Question*>(&question), sizeof(question)};
  alignas(struct cmsghdr) char room[CMSG_SPACE(handed_max * sizeof(int))] = {};
  struct msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (count > 0) {
    message.msg_control = room;
    message.msg_controllen = CMSG_SPACE(static_cast<std::size_t>(count) * sizeof(int));
    struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(static_cast<std::size_t>(count) * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors, static_cast<std::size_t>(count) * sizeof(int));
  }
  long sent = -EINTR;
  while (sent == -EINTR) sent = raw::call(SYS_sendmsg, to, &message, MSG_NOSIGNAL);
  return sent == static_cast<long>(sizeof(question));
}

// Error numbers of the way, not of the file.
constexpr int no_collector = -1;
constexpr int went_away = -2;
constexpr int silent = -3;

int read_answers(int from, std::uint64_t& version) {
  Answer answer;
  for (;;) {
    const int ready = wait_on(from, POLLIN, silence_ms_max);
    if (ready == -EINTR) continue;
    if (ready == 0) return silent;
    if (ready < 0) return went_away;
    const long got = raw::call(SYS_recvfrom, from, &answer, sizeof(answer), 0, nullptr, nullptr);
    if (got == -EINTR || got == -EAGAIN) continue;
    if (got < static_cast<long>(answer_bytes_min)) return went_away;
    version = answer.version;
    if (answer.said == Said::done) return answer.error;
    if (answer.said == Said::words && answer.bytes <= words_max) {
      tell("", {answer.words, answer.bytes}, "");
    }
  }
}

// The collector is stopped, or hangs: no other may take its place while it lives, and what it
// has, the agent has too.
void end_listener(int fd) {
  struct {
    pid_t pid;
    uid_t user;
    gid_t group;
  } peer = {};
  socklen_t bytes = sizeof(peer);
  if (raw::call(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return;
  if (peer.pid > 1) raw::call(SYS_kill, peer.pid, SIGKILL);
}

long now_s() {
  struct timespec now = {};
  raw::call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

// With all that was counted. What a collector that ends at once had of it is lost.
bool send_counted(int to, Question question, const int* descriptors) {
  question.counts = take_counts();
  const bool sent = send_question(to, question, descriptors, handed_with(question.ask));
  if (!sent) give_back(question.counts);
  return sent;
}

int ask(const Question& question, const int* descriptors, std::uint64_t& version) {
  const int fd = connect_or_start();
  if (fd < 0) return no_collector;
  const bool sent = send_counted(fd, question, descriptors);
  const int answered = sent ? read_answers(fd, version) : went_away;
  const bool files = question.ask == Ask::keep || question.ask == Ask::sync;
  if (answered == silent && !files) end_listener(fd);
  raw::close(fd);
  return answered;
}

int ask(const Question& question) {
  std::uint64_t none = 0;
  return ask(question, nullptr, none);
}

// A collector that goes away while it brings files home is followed by another one.
int settle(const Question& question) {
  constexpr int attempts = 3;
  int answered = went_away;
  for (int attempt = 0; attempt < attempts && answered < 0 && answered != no_collector; ++attempt) {
    answered = ask(question);
  }
  if (answered >= 0) return answered;
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

namespace {

// Of a file that the collector may take. False: it may not.
bool ask_to_take(Ask what, const Finished& finished, Question& question) {
  if (settings.socket[0] == '\0' || out_of_pool.load() || now_s() < quiet_until.load())
    return false;
  struct stat memory = {};
  if (raw::fstat(finished.memory, &memory) != 0) return false;
  if (static_cast<unsigned long long>(memory.st_size) < settings.bytes_min) return false;
  question.ask = what;
  question.until = settings.until_local ? Until::local : Until::captured;
  question.opened_bytes = finished.opened.st_size;
  question.opened_s = finished.opened.st_mtim.tv_sec;
  question.opened_ns = finished.opened.st_mtim.tv_nsec;
  return true;
}

void note_silence(int answered) {
  constexpr long quiet_s = 60;
  if (answered == silent) quiet_until.store(now_s() + quiet_s);
}

// The agent may have the file from a collector that ended before its answer. It must not bring the
// file after the program has renamed or removed it.
void settle_taken(const Finished& finished) {
  struct stat placed = {};
  if (raw::fstat(finished.target, &placed) != 0) return;
  Question question;
  question.ask = Ask::settle;
  question.device = placed.st_dev;
  question.inode = placed.st_ino;
  settle(question);
}

}  // namespace

bool keep_in_pool(const Finished& finished, std::uint64_t synced) {
  Question question;
  if (!ask_to_take(Ask::keep, finished, question)) return false;
  question.version = synced;
  const int descriptors[2] = {finished.memory, finished.target};
  std::uint64_t none = 0;
  const int answered = ask(question, descriptors, none);
  note_silence(answered);
  if (answered == went_away) settle_taken(finished);
  return answered == 0;
}

int make_hold() {
  char folder[sizeof(settings.socket)];
  std::strcpy(folder, settings.socket);
  char* slash = std::strrchr(folder, '/');
  if (slash == nullptr) return -ENOENT;
  slash[slash == folder ? 1 : 0] = '\0';
  const int fd = raw::openat(AT_FDCWD, folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
  if (fd < 0) return fd;
  const long locked = raw::call(SYS_flock, fd, LOCK_EX | LOCK_NB);
  if (locked == 0) return fd;
  raw::close(fd);
  return static_cast<int>(locked);
}

std::uint64_t sync_in_pool(const Finished& finished, int hold) {
  constexpr int attempts = 3;
  Question question;
  if (!settings.sync_local || !ask_to_take(Ask::sync, finished, question)) return 0;
  const int descriptors[3] = {finished.memory, finished.target, hold};
  std::uint64_t version = 0;
  int answered = went_away;
  for (int attempt = 0; attempt < attempts && answered == went_away; ++attempt) {
    answered = ask(question, descriptors, version);
  }
  note_silence(answered);
  return answered == 0 ? version : 0;
}

void let_go_in_pool(std::uint64_t synced) {
  Question question;
  question.ask = Ask::let_go;
  question.version = synced;
  settle(question);
}

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
  const int answered = ask(question);
  if (answered == 0) return Renamed::yes;
  return answered > 0 || answered == no_collector ? Renamed::no : Renamed::failed;
}

int settle_found(const struct stat& found, bool reads) {
  if (reads ? !is_awaited(found) : !is_pending(found)) return 0;
  Question question;
  question.ask = Ask::settle;
  question.device = found.st_dev;
  question.inode = found.st_ino;
  question.reads = reads ? 1 : 0;
  return settle(question);
}

int settle_path(int folder, const char* path, int flags) {
  if (!is_anything_pending() || path == nullptr) return 0;
  struct stat found = {};
  if (raw::fstatat(folder, path, &found, flags & AT_SYMLINK_NOFOLLOW) != 0) return 0;
  if (!S_ISDIR(found.st_mode)) return settle_found(found);
  settle_all();
  return 0;
}

int settle_file(int folder, const char* path, int flags, bool reads) {
  if (!is_anything_pending() || path == nullptr) return 0;
  struct stat found = {};
  if (raw::fstatat(folder, path, &found, flags & AT_SYMLINK_NOFOLLOW) != 0) return 0;
  return settle_found(found, reads);
}

void settle_all() {
  if (!is_anything_pending()) return;
  Question question;
  question.ask = Ask::settle_all;
  settle(question);
}

void note_at_end() {
  if (settings.socket[0] == '\0' || !has_counts() || !is_owner()) return;
  const int fd = connect_patiently();
  if (fd < 0) return;
  Question question;
  question.ask = Ask::note;
  question.last = raw::getpid() == settings.root ? 1 : 0;
  std::uint64_t none = 0;
  if (send_counted(fd, question, nullptr)) read_answers(fd, none);
  raw::close(fd);
}

void settle_at_end() {
  if (settings.socket[0] == '\0') return;
  if (raw::getpid() != settings.root || !is_anything_pending()) return note_at_end();
  Question question;
  question.ask = Ask::settle_all;
  question.talks = 1;
  settle(question);
}

}  // namespace backstay::files
