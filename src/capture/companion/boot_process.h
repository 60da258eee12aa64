// The program under the boot program: started, asked, signalled, ended. One thread. It lives in a
// process group of its own, so that a signal to the companion's group does not reach it twice; it
// ends when the companion does.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "capture/image/format/requests.h"
#include "client/connection.h"

namespace backstay::image {

// What a life of the program needs beside its words.
struct LifeOptions {
  // Of a program that may use MPI (docs/protocol/lower-half.md).
  std::string mpi;           // the folder of the lower half and of our libraries; "": none
  std::string launcher_mpi;  // path of the launcher's own MPI library; "": unknown
  std::string channel;       // CutChannel::path() for this life of the program; "": none
  std::string contents;  // patterns of files whose contents are in an image, one a line; "": none
};

class BootProcess {
 public:
  // `words`: the program and its arguments; none: a saved one is brought back.
  // Errors: io, not_found (the boot program).
  static Result<std::unique_ptr<BootProcess>> start(const std::vector<std::string>& words,
                                                    const LifeOptions& life);
  ~BootProcess();  // ends it, if it was not left
  BootProcess(const BootProcess&) = delete;
  BootProcess& operator=(const BootProcess&) = delete;

  // Lends it this pool, unless it has it already (a program that has replaced itself has not).
  // Errors: as ask().
  Status lend(const client::Connection::Pool& pool);
  // One request and its answer; blocks. Errors: again (the program is just replacing itself),
  // busy (it has a child), unsupported (not now; says why), mismatch (it ends, as this program or
  // machine is none for it; says why), rank_lost (it has ended).
  Result<Answer> ask(const Request& request, int descriptor = -1);
  // The same in two steps, so that the companion works meanwhile. Each begin() has its answer()
  // before the next question.
  void begin(const Request& request, int descriptor = -1);
  Result<Answer> answer();
  // Where memory of the pool that was lent lies in it.
  std::uint64_t in_pool(std::span<const std::byte> memory) const;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // The exit code, once it has ended; that of a signal is 128 and its number. Does not block.
  std::optional<int> reap();
  int wait();

 private:
  BootProcess() = default;
  Fd socket_;
  std::string program_;  // the boot program's path
  pid_t pid_ = -1;
  std::optional<int> end_;
  client::Connection::Pool pool_{};
  // Of the pool's memory file. Another agent's may have the address and the number of the
  // descriptor that the last one had. The program maps it, so no later file has its inode
  // meanwhile.
  ino_t pool_inode_ = 0;
};

}  // namespace backstay::image
