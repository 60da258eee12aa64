// MPI in a program behind a launcher (docs/protocol/lower-half.md): through our library, or through
// one that is not ours, which no image can hold. One thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>

namespace backstay::image {

// The file name of the MPI library in `folder` that the process has mapped; "": none. Exact while
// the process stands still.
std::string mpi_library_of(pid_t process, const std::string& folder);

// State that a rank shares with others behind our back: after a restart each would wait for ranks
// that know nothing of it.
class SharedState {
 public:
  // `folder`: of our MPI libraries.
  explicit SharedState(std::string folder) : folder_(std::move(folder)) {}
  // Why the process cannot be saved: it has a real MPI mapped, known by the function PMPI_Init,
  // which MPI libraries alone define; or memory that it may write and another process has, too.
  // "": neither. Reads /proc and, once, each file that the process has mapped.
  std::string why_not(pid_t process);

 private:
  bool is_mpi(const std::string& file);

  const std::string folder_;
  std::map<std::string, bool> known_;  // files: whether they are MPI libraries
};

}  // namespace backstay::image
