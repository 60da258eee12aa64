// A snapshot of a program that stands in a cut: a copy of its process (boot/snapshot.h), a child of
// this one. The image is read out of it while the program runs. One thread.
#pragma once

#include <sys/types.h>

#include <memory>

#include "base/fd.h"
#include "base/result.h"
#include "capture/image/format/requests.h"

namespace backstay::image {

class BootProcess;

class Snapshot {
 public:
  // The cut goes on in it where it was; the program still stands. Errors: unsupported (this program
  // can have none), again (the machine gives none now), rank_lost; nothing has changed then.
  static Result<std::unique_ptr<Snapshot>> take(BootProcess& boot);
  ~Snapshot();  // ends it
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // As BootProcess::ask(). Errors: io (it was killed).
  Result<Answer> ask(const Request& request);

 private:
  Snapshot() = default;
  Fd line_;
  pid_t pid_ = -1;
};

}  // namespace backstay::image
