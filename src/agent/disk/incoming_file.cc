#include "agent/disk/incoming_file.h"

#include <utility>

#include "base/check.h"

namespace backstay::agent {

IncomingFile::~IncomingFile() = default;

Status IncomingFile::create(std::uint64_t bytes) {
  BACKSTAY_TRY(tier_.remove(names_.manifest));
  BACKSTAY_ASSIGN(writer_, tier_.create(names_.data, bytes));
  wrote_ = true;
  return {};
}

void IncomingFile::put_piece(std::uint64_t offset, Bytes piece, Done done) {
  while (writer_->in_flight() >= writer_->depth()) reap(/*wait=*/true);
  const std::uint64_t tag = next_tag_++;
  writing_[tag] = std::move(done);
  writer_->write(offset, piece, tag);
}

bool IncomingFile::reap(bool wait) {
  if (!writer_) return false;
  const auto all = writer_->reap(wait);
  for (const tier::Done& done : all) {
    auto written = writing_.extract(done.tag);
    BACKSTAY_CHECK(!written.empty());
    written.mapped()(done.status);
  }
  return !all.empty();
}

void IncomingFile::wait_for_pieces() {
  while (in_flight() > 0) reap(/*wait=*/true);
}

Status IncomingFile::seal_data(std::uint64_t bytes) {
  BACKSTAY_TRY(writer_->seal(bytes));
  BACKSTAY_TRY(tier_.sync(names_.folder));  // its name must not come after the manifest's
  writer_.reset();
  return {};
}

Status IncomingFile::remove_rest() {
  writer_.reset();
  writing_.clear();
  if (!wrote_) return {};
  BACKSTAY_TRY(tier_.remove(names_.manifest));
  return tier_.remove(names_.data);
}

}  // namespace backstay::agent
