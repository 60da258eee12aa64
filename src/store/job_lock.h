// Two agents must never write the same job: the one that serves it holds an flock on
// <dir>/<job>/lock, and one on the folder <dir>/<job> itself where the file system has that. Two
// programs of one name on different nodes must not share a durable directory: the agent that copies
// for one that lives holds an flock on <durable.dir>/<job>/live (docs/format/durable.md). The
// kernel drops a lock when the agent ends, however it ends. The file holds the process id and the
// machine's name of who locked it last, for messages.
//
// Purgers and people remove files. Who holds a lock looks before it writes whether others would
// still find it (check()).
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace backstay::store {

// Any thread. Blocks on the disk. The lock is dropped with the object.
class JobLock final {
 public:
  enum class Kind { job, live };
  JobLock(const std::string& dir, std::string job, Kind kind);
  JobLock(const JobLock&) = delete;
  JobLock& operator=(const JobLock&) = delete;

  // Creates the job's folder (mode 0700) where missing. Errors: busy (another agent holds it),
  // config (a folder that can never be made, or what is no file in the lock's place), permission,
  // no_space, io.
  Status take();

  // Whether others still find it locked; ok before take(). A lock that was removed or replaced,
  // alone or with its folder, is made again where no other holder has come since: the folder's lock
  // tells, and without it what stands in the file's place counts as another one's. Errors: busy
  // (another one has come: it stays so), permission, no_space, io.
  Status check();

  // Whether others find the file or its folder locked. Nothing is made again.
  bool found();

  // In the child of a fork: closes what it has of the lock, which stays the parent's. Only what is
  // allowed there; nothing else may be called afterwards.
  void leave_to_parent() const;

  // How often the folder had to be made again: what was written before lies elsewhere, or nowhere.
  unsigned folders_lost();

 private:
  Status open_and_lock();
  Status lock_folder();
  Status open_file();
  Status lock_file();
  Status still_named() const;
  Status make_again();
  Status make_folder_again() const;
  Status make_new_file(bool folder_held);
  bool held_by_another() const;
  std::string taken_by(int fd) const;
  Error lost() const;
  Error perhaps_lost() const;

  const std::string dir_;
  const std::string job_;
  const Kind kind_;
  const std::string folder_path_;
  const std::string path_;
  std::mutex mutex_;  // guards what follows
  Fd folder_;         // of Kind::job
  Fd file_;
  dev_t device_ = 0;  // of dir_ when it was taken
  unsigned folders_lost_ = 0;
  bool told_ = false;          // of what is no file in the lock's place
  std::optional<Error> lost_;  // what check() says from then on
};

using HeldLock = std::shared_ptr<JobLock>;

// One that is taken.
Result<HeldLock> lock_job(const std::string& dir, const std::string& job);

// The same of <durable.dir>/<job>/live. busy: a program of that name on other nodes copies to that
// directory, or `backstay run` brings home the files of a lost host out of it.
Result<HeldLock> lock_live(const std::string& dir, const std::string& job);

// Whether an agent holds that of lock_job() now. Shares the lock for an instant to find out: an
// agent that calls lock_job() in that instant is refused (busy), others who look are not. Errors:
// busy, which names the agent.
Status check_unlocked(const std::string& dir, const std::string& job);

}  // namespace backstay::store
