#include "capture/files/table.h"

namespace backstay::files {

Opening* Table::find(int fd) {
  if (fd < 0 || fd >= descriptors_max) return nullptr;
  const std::uint16_t number = descriptors_[fd].load(std::memory_order_acquire);
  return number == 0 ? nullptr : &all_openings_[number - 1];
}

bool Table::is_ours(int fd) const {
  if (fd < 0 || fd >= descriptors_max) return false;
  return (ours_[fd / 64].load(std::memory_order_relaxed) >> (fd % 64) & 1U) != 0;
}

void Table::set_ours(int fd, bool ours) {
  const std::uint64_t bit = std::uint64_t{1} << (fd % 64);
  if (ours) {
    ours_[fd / 64].fetch_or(bit, std::memory_order_relaxed);
  } else {
    ours_[fd / 64].fetch_and(~bit, std::memory_order_relaxed);
  }
}

MemoryFile* Table::at_inode(dev_t device, ino_t inode) {
  if (empty()) return nullptr;
  for (int number = 0; number < files_end_; ++number) {
    MemoryFile& file = all_files_[number];
    if (file.openings == 0) continue;
    if (file.placed.st_ino == inode && file.placed.st_dev == device) return &file;
    if (file.memory_stat.st_ino == inode && file.memory_stat.st_dev == device) return &file;
  }
  return nullptr;
}

MemoryFile* Table::add_file() {
  for (int number = 0; number < openings_max; ++number) {
    MemoryFile& file = all_files_[number];
    if (file.openings != 0) continue;
    file = MemoryFile{};
    if (number >= files_end_) files_end_ = number + 1;
    return &file;
  }
  return nullptr;
}

MemoryFile* Table::first_file() {
  if (empty()) return nullptr;
  return all_files_[0].openings != 0 ? &all_files_[0] : next_file(all_files_[0]);
}

MemoryFile* Table::next_file(const MemoryFile& file) {
  for (std::ptrdiff_t number = &file - all_files_.data() + 1; number < files_end_; ++number) {
    if (all_files_[number].openings != 0) return &all_files_[number];
  }
  return nullptr;
}

Opening* Table::next_opening(const MemoryFile& file, const Opening* previous) {
  const std::size_t first =
      previous == nullptr ? 0 : static_cast<std::size_t>(previous - all_openings_.data()) + 1;
  for (std::size_t number = first; number < all_openings_.size(); ++number) {
    if (all_openings_[number].file == &file) return &all_openings_[number];
  }
  return nullptr;
}

Opening* Table::add_opening(MemoryFile& file, int real, int flags) {
  for (Opening& opening : all_openings_) {
    if (opening.file != nullptr) continue;
    opening =
        Opening{.file = &file, .real = real, .flags = flags, .descriptors = 0, .stream = nullptr};
    if (file.openings++ == 0) files_.fetch_add(1, std::memory_order_relaxed);
    return &opening;
  }
  return nullptr;
}

std::uint16_t Table::number_of(const Opening& opening) const {
  return static_cast<std::uint16_t>(&opening - all_openings_.data() + 1);
}

void Table::bind(int fd, Opening& opening) {
  ++opening.descriptors;
  descriptors_[fd].store(number_of(opening), std::memory_order_release);
  if (fd >= descriptors_end_) descriptors_end_ = fd + 1;
}

Ended Table::end(int fd) {
  Opening* opening = find(fd);
  if (opening == nullptr || opening->descriptors > 1) return {};
  return {opening, opening->file->openings > 1 ? nullptr : opening->file};
}

void Table::unbind(int fd) {
  if (Opening* opening = find(fd)) {
    --opening->descriptors;
    descriptors_[fd].store(0, std::memory_order_release);
  }
}

void Table::remove(Opening& opening) {
  if (--opening.file->openings == 0) files_.fetch_sub(1, std::memory_order_relaxed);
  opening.file = nullptr;
}

void Table::clear() {
  for (int fd = 0; fd < descriptors_end_; ++fd) descriptors_[fd] = 0;
  for (auto& bits : ours_) bits = 0;
  for (Opening& opening : all_openings_) opening.file = nullptr;
  for (MemoryFile& file : all_files_) file.openings = 0;
  files_ = 0;
  descriptors_end_ = 0;
}

int Table::next_descriptor(const Opening& opening, int fd) const {
  const std::uint16_t number = number_of(opening);
  for (; fd < descriptors_end_; ++fd) {
    if (descriptors_[fd].load(std::memory_order_relaxed) == number) return fd;
  }
  return -1;
}

}  // namespace backstay::files
