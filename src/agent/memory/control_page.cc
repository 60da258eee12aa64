#include "agent/memory/control_page.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace backstay::agent {

namespace {
constexpr std::size_t page_bytes = 4096;
}

Result<std::unique_ptr<ControlPage>> ControlPage::create() {
  Fd fd(::memfd_create("backstay-control", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || ::ftruncate(fd.get(), page_bytes) != 0) {
    return errno_error("create the control page", errno);
  }
  void* page = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (page == MAP_FAILED) return errno_error("map the control page", errno);
  // From here on no other process can map it for writing. Kernels before 5.1 lack this seal.
  ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
  return std::unique_ptr<ControlPage>(new ControlPage(std::move(fd), static_cast<Words*>(page)));
}

ControlPage::~ControlPage() { ::munmap(words_, page_bytes); }

void ControlPage::request_checkpoint(bool stop) {
  if (stop) words_->stop.store(1);
  words_->requests.fetch_add(1);
}

void ControlPage::clear() {
  words_->stop.store(0);
  words_->requests.store(0);
}

bool ControlPage::stop_requested() const { return words_->stop.load() != 0; }

}  // namespace backstay::agent
