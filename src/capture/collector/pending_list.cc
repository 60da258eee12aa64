#include "capture/collector/pending_list.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "capture/files/raw.h"

namespace backstay::files {

namespace {

// A page that its collector removes while we wait for it is of no use.
bool is_at(const std::string& path, int file) {
  struct stat named = {};
  struct stat open = {};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(file, &open) == 0 &&
         raw::is_same(named, open);
}

}  // namespace

Result<std::unique_ptr<PendingList>> PendingList::open(const std::string& socket) {
  const std::string path = socket + page_suffix;
  for (;;) {
    Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.valid()) return errno_error("open " + path, errno);
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return errno_error("lock " + path, errno);
      return Error(Code::busy, "another collector has " + path);
    }
    if (!is_at(path, file.get())) continue;
    if (::posix_fallocate(file.get(), 0, sizeof(PendingPage)) != 0) {
      return errno_error("make " + path, ENOSPC);
    }
    void* at =
        ::mmap(nullptr, sizeof(PendingPage), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (at == MAP_FAILED) return errno_error("map " + path, errno);
    auto* page = static_cast<PendingPage*>(at);
    return std::unique_ptr<PendingList>(new PendingList(path, std::move(file), page));
  }
}

PendingList::~PendingList() { ::munmap(page_, sizeof(PendingPage)); }

// A reader that sees the count sees the slot.
bool PendingList::list(std::uint64_t device, std::uint64_t inode) {
  for (std::uint32_t number = 0; number < pending_max; ++number) {
    PendingSlot& slot = page_->slots[number];
    if (slot.inode.load() != 0) continue;
    slot.device.store(device);
    slot.whole.store(0);
    slot.inode.store(inode);
    if (number >= page_->used.load()) page_->used.store(number + 1);
    page_->count.fetch_add(1);
    return true;
  }
  return false;
}

void PendingList::set_whole(std::uint64_t device, std::uint64_t inode) {
  for (std::uint32_t number = 0; number < page_->used.load(); ++number) {
    PendingSlot& slot = page_->slots[number];
    if (slot.inode.load() == inode && slot.device.load() == device) slot.whole.store(1);
  }
}

void PendingList::unlist(std::uint64_t device, std::uint64_t inode) {
  for (std::uint32_t number = 0; number < page_->used.load(); ++number) {
    PendingSlot& slot = page_->slots[number];
    if (slot.inode.load() != inode || slot.device.load() != device) continue;
    slot.inode.store(0);
    page_->count.fetch_sub(1);
    return;
  }
}

void PendingList::clear() {
  page_->count.store(0);
  for (PendingSlot& slot : page_->slots) slot.inode.store(0);
  page_->used.store(0);
}

void PendingList::end() {
  page_->ended.store(1);
  ::unlink(path_.c_str());
}

}  // namespace backstay::files
