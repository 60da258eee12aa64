// A hold keeps the file of one version of captured files from coming to its place, while a program
// that has synced it still has it open (docs/protocol/home.md, "Holds"). It is a locked file beside
// the agent's socket: the kernel drops the lock with the last process that has it.
//
// Any thread. Blocks on the file system.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/ids.h"

namespace backstay {

// A number may be given once more where an agent dies before the version is on the disk.
struct HeldVersion {
  VersionNumber number = 0;
  RunId run = 0;
  friend bool operator==(const HeldVersion&, const HeldVersion&) = default;
};

// `folder`: of the agent's socket; `job`: of the captured files.
std::string hold_path(const std::string& folder, const std::string& job, HeldVersion version);
// The path of a hold of a version with this number; "": there is none.
std::string find_hold(const std::string& folder, const std::string& job, VersionNumber number);

// A hold that this process has, under its name; it goes with the object.
class Hold {
 public:
  // None where another process has it. One that no process has is taken over; where none can be
  // made, nobody else can make one.
  static std::optional<Hold> take(const std::string& path);
  Hold(Hold&& other) noexcept
      : path_(std::exchange(other.path_, "")), file_(std::move(other.file_)) {}
  ~Hold();

 private:
  Hold(std::string path, Fd file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string path_;
  Fd file_;
};

// Whether there are holds of this job, with or without a process that has them.
bool has_holds(const std::string& folder, const std::string& job);

}  // namespace backstay
