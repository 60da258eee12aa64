#include "store/incoming_file.h"

#include <utility>

#include "base/check.h"

namespace backstay::store {

IncomingFile::~IncomingFile() = default;

Status IncomingFile::create(std::uint64_t bytes) {
  BACKSTAY_TRY(tier_.remove(names_.manifest));
  BACKSTAY_TRY(file_.open(bytes));
  wrote_ = true;
  return {};
}

void IncomingFile::put_piece(std::uint64_t offset, Bytes piece, Done done) {
  while (in_flight() >= file_.depth()) reap(/*wait=*/true);
  const std::uint64_t tag = next_tag_++;
  writing_[tag] = std::move(done);
  file_.write(offset, piece, tag);
}

bool IncomingFile::reap(bool wait) {
  const auto all = file_.reap(wait);
  for (const tier::Done& done : all) {
    auto written = writing_.extract(done.tag);
    BACKSTAY_CHECK(!written.empty());
    written.mapped()(done.status);
  }
  return !all.empty();
}

Status IncomingFile::seal_data(std::uint64_t bytes) {
  while (in_flight() > 0) reap(/*wait=*/true);
  return file_.seal(bytes, /*name_too=*/true);
}

Status IncomingFile::remove_rest() {
  file_.close();
  writing_.clear();
  if (!wrote_) return {};
  BACKSTAY_TRY(tier_.remove(names_.manifest));
  return tier_.remove(names_.data);
}

}  // namespace backstay::store
