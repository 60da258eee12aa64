#include "store/job_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>
#include <utility>

#include "base/folders.h"
#include "base/machine.h"
#include "base/notice.h"

namespace backstay::store {

namespace {

constexpr std::size_t holder_bytes_max = 300;

// A second name belongs to another owner (`cp -al` of the folder, a link to a file): it is not
// written into, and what stands in it may be of an earlier holder.
bool has_one_name(int fd) {
  struct stat facts {};
  return ::fstat(fd, &facts) == 0 && facts.st_nlink == 1;
}

// For the message that others get. Nothing depends on it: the lock is the kernel's.
void write_holder(int fd) {
  if (!has_one_name(fd)) return;
  const std::string text = fmt::format("{} {}\n", ::getpid(), host_name());
  if (::ftruncate(fd, 0) == 0) (void)!::pwrite(fd, text.data(), text.size(), 0);
  (void)::fsync(fd);  // other hosts of a network file system read it
}

struct Holder {
  int pid = 0;  // 0: not known
  std::string host;
};

Holder holder(int fd) {
  if (!has_one_name(fd)) return {};
  std::array<char, holder_bytes_max> text{};
  if (::pread(fd, text.data(), text.size() - 1, 0) <= 0) return {};
  std::istringstream words(text.data());
  Holder found;
  if (!(words >> found.pid >> found.host) || found.pid <= 0) return {};
  const bool printable =
      std::all_of(found.host.begin(), found.host.end(), [](char c) { return c > ' ' && c < 127; });
  if (!printable) return {};
  // What a holder on a read-only disk could not write over.
  if (found.host == host_name() && ::kill(found.pid, 0) != 0 && errno == ESRCH) return {};
  return found;
}

std::string served(int fd, const std::string& dir, const std::string& job) {
  const auto [pid, host] = holder(fd);
  const std::string who =
      pid == 0 ? ""
               : fmt::format(" (process {} on {}; to end it there: backstay agent stop --pid {})",
                             pid, host, pid);
  return fmt::format("another agent{} serves job {} in {}", who, job, dir);
}

std::string lives_elsewhere(int fd, const std::string& dir, const std::string& job) {
  const auto [pid, host] = holder(fd);
  const std::string where = pid == 0 ? "" : fmt::format(" on {} (process {})", host, pid);
  return fmt::format(
      "another program of job {} lives{} and writes its versions to {}; give one of them another "
      "name (BACKSTAY_JOB) or another durable.dir",
      job, where, dir);
}

// What a link names is not ours to write into, and a pipe of that name must not make us wait.
constexpr int ours = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

// Who opens a leased file waits for the lease's end; to be told so at once does not help.
Fd open_ours(const std::string& path, int flags) {
  int fd = ::open(path.c_str(), flags | ours, 0600);
  if (fd < 0 && errno == EWOULDBLOCK) fd = ::open(path.c_str(), (flags | ours) & ~O_NONBLOCK, 0600);
  return Fd(fd);
}

bool is_plain_file(int fd) {
  struct stat facts {};
  return ::fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode);
}

Error no_file_of_ours(const std::string& path) {
  struct stat facts {};
  const bool is_link = ::lstat(path.c_str(), &facts) == 0 && S_ISLNK(facts.st_mode);
  return {Code::config,
          fmt::format("{} is {}, so it cannot be Backstay's: move it away or remove it", path,
                      is_link ? "a link" : "no plain file")};
}

enum class Same { yes, no, nothing };

// Whether a name leads to what `fd` has open.
Result<Same> leads_to(const std::string& path, int fd) {
  struct stat named {};
  struct stat held {};
  if (::stat(path.c_str(), &named) != 0) {
    const bool gone = errno == ENOENT || errno == ENOTDIR || errno == ESTALE || errno == ELOOP;
    if (gone) return Same::nothing;
    return errno_error("look at " + path, errno);
  }
  if (::fstat(fd, &held) != 0) return errno_error("look at what had been " + path, errno);
  return named.st_dev == held.st_dev && named.st_ino == held.st_ino ? Same::yes : Same::no;
}

bool refused(int flocked) { return flocked != 0 && errno == EWOULDBLOCK; }

bool is_locked(const Fd& fd) { return fd.valid() && refused(::flock(fd.get(), LOCK_SH | LOCK_NB)); }

}  // namespace

JobLock::JobLock(const std::string& dir, std::string job, Kind kind)
    : dir_(dir),
      job_(std::move(job)),
      kind_(kind),
      folder_path_(dir_ + "/" + job_),
      path_(folder_path_ + (kind == Kind::job ? "/lock" : "/live")) {}

std::string JobLock::taken_by(int fd) const {
  if (kind_ == Kind::live) return lives_elsewhere(fd, dir_, job_);
  return served(fd, dir_, job_) +
         "; use its socket (agent.socket), stop it, or name the job differently";
}

Error JobLock::lost() const {
  const Fd other(::open(path_.c_str(), O_RDONLY | ours));
  return {Code::busy,
          fmt::format("{} was removed while it was locked, and another agent made a new one: {}",
                      path_, taken_by(other.get()))};
}

Error JobLock::perhaps_lost() const {
  return {
      Code::busy,
      fmt::format("{} was removed while it was locked, and a new one stands there: another "
                  "agent may have written there meanwhile; end this job's agent and start again",
                  path_)};
}

Status JobLock::take() {
  const std::lock_guard guard(mutex_);
  constexpr int tries = 3;  // what was opened may have been removed before it was locked
  Status named;
  for (int left = tries; left > 0; --left) {
    BACKSTAY_TRY(open_and_lock());
    named = still_named();
    if (named.ok()) break;
  }
  if (!named.ok()) {
    file_.reset();
    folder_.reset();
    return named;
  }
  struct stat facts {};
  if (::stat(dir_.c_str(), &facts) != 0) return errno_error("look at " + dir_, errno);
  device_ = facts.st_dev;
  write_holder(file_.get());
  return {};
}

Status JobLock::open_and_lock() {
  BACKSTAY_TRY(make_chosen_folder(folder_path_, "storage.dir (or durable.dir)"));
  Status locked = lock_folder();
  if (locked.ok()) locked = open_file();
  if (locked.ok()) locked = lock_file();
  if (!locked.ok()) {
    file_.reset();
    folder_.reset();
  }
  return locked;
}

// It holds where the file is removed. Not every file system can lock a folder (NFS): then the file
// alone counts.
Status JobLock::lock_folder() {
  if (kind_ == Kind::live) return {};  // several locks may be in a durable directory
  Fd folder(::open(folder_path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return {};
  if (refused(::flock(folder.get(), LOCK_EX | LOCK_NB))) {
    const Fd file(::open(path_.c_str(), O_RDONLY | ours));
    return Error(Code::busy, taken_by(file.get()));
  }
  folder_ = std::move(folder);
  return {};
}

Status JobLock::open_file() {
  file_ = open_ours(path_, O_RDWR | O_CREAT);
  // A disk that is mounted read-only, or that lets us only read, can still be restarted from.
  const int why = errno;
  if (!file_.valid()) file_ = open_ours(path_, O_RDONLY);
  if (file_.valid() ? !is_plain_file(file_.get()) : why == ELOOP) return no_file_of_ours(path_);
  return file_.valid() ? Status() : Status(errno_error("open " + path_, why));
}

Status JobLock::lock_file() {
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) return {};
  if (errno == EWOULDBLOCK) return Error(Code::busy, taken_by(file_.get()));
  return errno_error("lock " + path_, errno);
}

Status JobLock::still_named() const {
  BACKSTAY_ASSIGN(const Same same, leads_to(path_, file_.get()));
  if (same == Same::yes) return {};
  return Error(Code::busy, path_ + " was removed while it was being locked; try again");
}

Status JobLock::check() {
  const std::lock_guard guard(mutex_);
  if (lost_) return *lost_;
  if (!file_.valid()) return {};
  BACKSTAY_ASSIGN(const Same same, leads_to(path_, file_.get()));
  if (same == Same::yes) return {};
  const Status again = make_again();
  if (!again.ok() && again.error().code() == Code::busy) {
    lost_ = again.error();
    notice(Weight::error, "job={} is not written any more: {}", job_, lost_->message());
  }
  return again;
}

unsigned JobLock::folders_lost() {
  const std::lock_guard guard(mutex_);
  return folders_lost_;
}

void JobLock::leave_to_parent() const {
  for (const Fd* fd : {&file_, &folder_}) {
    if (fd->valid()) ::close(fd->get());
  }
}

bool JobLock::found() {
  const std::lock_guard guard(mutex_);
  if (lost_ || !file_.valid()) return false;
  if (still_named().ok()) return true;
  if (!folder_.valid()) return false;
  const auto same = leads_to(folder_path_, folder_.get());
  return same.ok() && *same == Same::yes;
}

// An agent that has come since holds the folder, where folders can be locked.
Status JobLock::make_again() {
  BACKSTAY_TRY(make_folder_again());
  bool folder_held = false;
  if (folder_.valid()) {
    BACKSTAY_ASSIGN(const Same same, leads_to(folder_path_, folder_.get()));
    if (same != Same::yes && !lock_folder().ok()) return lost();
    if (same != Same::yes) ++folders_lost_;
    folder_held = same == Same::yes;
  }
  return make_new_file(folder_held);
}

// Not where the file system was unmounted: what is below it is no place for versions.
Status JobLock::make_folder_again() const {
  struct stat facts {};
  const Fd dir(::open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid()) return errno_error("open " + dir_, errno);
  if (::fstat(dir.get(), &facts) != 0) return errno_error("look at " + dir_, errno);
  if (facts.st_dev != device_)
    return Error(Code::io,
                 dir_ + " is on another file system than when the job began; mount that one again");
  if (::mkdir(folder_path_.c_str(), 0700) == 0)
    return ::fsync(dir.get()) == 0 ? Status() : Status(errno_error("sync " + dir_, errno));
  return errno == EEXIST ? Status() : Status(errno_error("make " + folder_path_, errno));
}

// Where the folder was held all the time, what stands in the file's place has no owner: a plain
// file is locked; anything else is left there and reported once.
Status JobLock::make_new_file(bool folder_held) {
  const int exclusive = folder_held ? 0 : O_EXCL;
  Fd made = open_ours(path_, O_RDWR | O_CREAT | exclusive);
  const int why = errno;
  if (made.valid() ? !is_plain_file(made.get()) : folder_held && (why == ELOOP || why == EISDIR)) {
    if (!std::exchange(told_, true))
      notice(Weight::warn, "{}; the lock on its folder holds meanwhile",
             no_file_of_ours(path_).message());
    return {};
  }
  if (!made.valid() && why == EEXIST) return held_by_another() ? lost() : perhaps_lost();
  if (!made.valid()) return errno_error("make " + path_ + ", which was removed,", why);
  if (refused(::flock(made.get(), LOCK_EX | LOCK_NB))) return lost();
  file_ = std::move(made);
  write_holder(file_.get());
  notice(Weight::warn,
         "{} had been removed and was made again; who clears that folder must leave it", path_);
  return {};
}

bool JobLock::held_by_another() const {
  const Fd file(::open(path_.c_str(), O_RDONLY | ours));
  return is_locked(file);
}

namespace {

Result<HeldLock> held(const std::string& dir, const std::string& job, JobLock::Kind kind) {
  auto lock = std::make_shared<JobLock>(dir, job, kind);
  BACKSTAY_TRY(lock->take());
  return lock;
}

}  // namespace

Result<HeldLock> lock_job(const std::string& dir, const std::string& job) {
  return held(dir, job, JobLock::Kind::job);
}

Result<HeldLock> lock_live(const std::string& dir, const std::string& job) {
  return held(dir, job, JobLock::Kind::live);
}

Status check_unlocked(const std::string& dir, const std::string& job) {
  const std::string folder = dir + "/" + job;
  const Fd file(::open((folder + "/lock").c_str(), O_RDONLY | ours));
  const Fd all(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!is_locked(file) && !is_locked(all)) return {};
  return Error(Code::busy, served(file.get(), dir, job));
}

}  // namespace backstay::store
