#include "tier/file_stream.h"

namespace backstay::tier {

static bool aligned(std::uint64_t offset, const void* address, std::size_t bytes) {
  return (offset | reinterpret_cast<std::uintptr_t>(address) | bytes) % io::direct_alignment == 0;
}

void FileWriter::write(std::uint64_t offset, Bytes from, std::uint64_t tag) {
  BACKSTAY_CHECK(aligned(offset, from.data(), from.size()));
  ring_->write(*file_, offset, from, tag);
}

std::vector<Done> FileWriter::reap(bool wait) {
  auto done = ring_->reap(wait);
  for (const Done& one : done) {
    if (failed_.ok() && !one.status.ok()) failed_ = one.status;
  }
  return done;
}

Status FileWriter::seal(std::uint64_t bytes) {
  BACKSTAY_CHECK(in_flight() == 0);
  BACKSTAY_TRY(failed_);
  BACKSTAY_TRY(file_->truncate(bytes));
  BACKSTAY_TRY(file_->sync());
  if (!unnamed_) return {};
  BACKSTAY_TRY(unnamed_->fs.rename(unnamed_->temporary, unnamed_->path));
  unnamed_.reset();
  return {};
}

FileWriter::~FileWriter() {
  if (unnamed_) (void)unnamed_->fs.remove(unnamed_->temporary);
}

void FileReader::read(std::uint64_t offset, std::span<std::byte> to, std::uint64_t tag) {
  BACKSTAY_CHECK(aligned(offset, to.data(), to.size()));
  ring_->read(*file_, offset, to, tag);
}

std::vector<Done> FileReader::reap(bool wait) { return ring_->reap(wait); }

}  // namespace backstay::tier
