#include "client/fork_mark.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace backstay::client {

namespace {
constexpr std::size_t page_bytes = 4096;  // a whole page where pages are larger
}  // namespace

ForkMark::ForkMark() : pid_(::getpid()) {
  void* page =
      ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (::madvise(page, page_bytes, MADV_WIPEONFORK) != 0) {  // Linux 4.14
    ::munmap(page, page_bytes);
    return;
  }
  page_ = static_cast<volatile char*>(page);
  *page_ = 1;
}

ForkMark::~ForkMark() {
  if (page_ != nullptr) ::munmap(const_cast<char*>(page_), page_bytes);
}

bool ForkMark::is_own() const { return page_ != nullptr ? *page_ == 1 : ::getpid() == pid_; }

}  // namespace backstay::client
