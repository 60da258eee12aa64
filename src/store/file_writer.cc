#include "store/file_writer.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/failpoint.h"

namespace backstay::store {

namespace {
constexpr std::uint64_t header_tag = UINT64_MAX;
}

FileWriter::FileWriter(tier::Tier& tier, const std::string& job, const FileOf& file,
                       std::string purpose)
    : tier_(tier), names_(names_of(job, file)), purpose_(std::move(purpose)) {}

Status FileWriter::open(std::uint64_t bytes) {
  BACKSTAY_ASSIGN(writer_, tier_.create(names_.data, bytes));
  return {};
}

void FileWriter::write_header(const format::SegmentHeader& header) {
  const Buffer bytes = format::encode(header);
  header_ = std::make_unique<AlignedMemory>(bytes.size());
  std::memcpy(header_->span().data(), bytes.data(), bytes.size());
  writer_->write(0, header_->span(), header_tag);
}

void FileWriter::write(std::uint64_t offset, Bytes piece, std::uint64_t tag) {
  writer_->write(offset, piece, tag);
}

std::vector<tier::Done> FileWriter::reap(bool wait) {
  if (!writer_) return {};
  auto all = writer_->reap(wait);
  std::erase_if(all, [this](const tier::Done& done) {
    if (done.tag == header_tag) header_written_ = done.status;
    return done.tag == header_tag;
  });
  return all;
}

Status FileWriter::seal(std::uint64_t bytes, bool name_too) {
  step('1');
  BACKSTAY_TRY(writer_->seal(bytes));  // fails where any write has
  writer_.reset();
  if (name_too) BACKSTAY_TRY(tier_.sync(names_.folder));
  step('2');
  return {};
}

Status FileWriter::publish(Bytes manifest) {
  BACKSTAY_TRY(tier_.put(names_.manifest, manifest));
  step('3');
  return {};
}

void FileWriter::step(char number) const { failpoint(fmt::format("{}.{}", purpose_, number)); }

}  // namespace backstay::store
