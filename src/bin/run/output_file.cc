#include "bin/run/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace backstay::bin {

OutputFile::OutputFile(int descriptor) : descriptor_(descriptor) {
  struct stat facts {};
  if (::fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) return;
  const bool appends = (::fcntl(descriptor, F_GETFL) & O_APPEND) != 0;
  const off_t at = appends ? facts.st_size : ::lseek(descriptor, 0, SEEK_CUR);
  if (at >= 0) begin_ = at;
}

void OutputFile::cut_back() const {
  struct stat facts {};
  if (!begin_ || ::fstat(descriptor_, &facts) != 0 || facts.st_size <= *begin_) return;
  if (::ftruncate(descriptor_, *begin_) == 0) ::lseek(descriptor_, *begin_, SEEK_SET);
}

}  // namespace backstay::bin
