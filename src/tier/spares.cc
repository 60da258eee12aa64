#include "tier/spares.h"

#include <unistd.h>

#include <algorithm>

namespace backstay::tier {

Spares::Spares(io::FileSystem& fs, std::string folder, Limits limits,
               std::shared_ptr<const OpenReaders> readers)
    : fs_(fs), folder_(std::move(folder)), limits_(limits), readers_(std::move(readers)) {}

void Spares::forget_earlier() {
  if (limits_.on) (void)io::remove_tree(fs_, folder_);  // what is left is never used
}

bool Spares::reserve(Spare* spare) {
  const std::lock_guard lock(mutex_);
  if (unpublished_ + ready_.size() >= limits_.count_max) return false;
  ++unpublished_;
  spare->path = folder_ + "/" + std::to_string(::getpid()) + "-" + std::to_string(next_++);
  return true;
}

bool Spares::keep(const std::string& path, std::vector<Spare>* kept) {
  if (!limits_.on || !is_ours(path) || readers_->any(path)) return false;
  Spare spare{{}, size_of(path)};
  if (spare.bytes < limits_.bytes_min || !reserve(&spare)) return false;
  const bool moved = fs_.make_directories(folder_).ok() && fs_.rename(path, spare.path).ok();
  // A reader that opened it before it was moved has registered by now.
  const bool read = moved && readers_->any(path);
  if (moved && !read) {
    kept->push_back(std::move(spare));
    return true;
  }
  if (read) (void)fs_.remove(spare.path);
  const std::lock_guard lock(mutex_);
  --unpublished_;
  return read;
}

void Spares::publish(const std::vector<Spare>& kept) {
  const std::lock_guard lock(mutex_);
  ready_.insert(ready_.end(), kept.begin(), kept.end());
  unpublished_ -= kept.size();
}

void Spares::discard(const std::vector<Spare>& kept) {
  for (const Spare& spare : kept) (void)fs_.remove(spare.path);
  const std::lock_guard lock(mutex_);
  unpublished_ -= kept.size();
}

bool Spares::claim(std::uint64_t bytes, Spare* spare) {
  const std::lock_guard lock(mutex_);
  const auto fits = [bytes](const Spare& one) {
    return one.bytes / 2 <= bytes && bytes / 2 <= one.bytes;
  };
  const auto found = std::find_if(ready_.rbegin(), ready_.rend(), fits);
  if (found == ready_.rend()) return false;
  *spare = *found;
  ready_.erase(std::next(found).base());
  return true;
}

bool Spares::use(const std::string& path, std::uint64_t bytes) {
  Spare spare;
  while (claim(bytes, &spare)) {
    // Fails if another process of this directory deleted it.
    if (!fs_.rename(spare.path, path).ok()) {
      (void)fs_.remove(spare.path);
      continue;
    }
    if (fs_.sync_directory(folder_).ok()) return true;
    (void)fs_.remove(path);
  }
  return false;
}

bool Spares::drop() {
  std::vector<Spare> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(ready_);
  }
  for (const Spare& spare : all) (void)fs_.remove(spare.path);
  if (!all.empty()) (void)fs_.sync_directory(folder_);  // some systems free blocks only then
  return !all.empty();
}

bool Spares::is_ours(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return created_.erase(path) != 0;
}

void Spares::created(const std::string& path) {
  if (!limits_.on) return;
  const std::lock_guard lock(mutex_);
  created_.insert(path);
}

void Spares::removed(const std::string& path) {
  const std::lock_guard lock(mutex_);
  created_.erase(path);
}

std::uint64_t Spares::size_of(const std::string& path) {
  auto file = fs_.open(path, io::Open::read);
  if (!file.ok()) return 0;
  const auto bytes = (*file)->size();
  return bytes.ok() ? *bytes : 0;
}

}  // namespace backstay::tier
