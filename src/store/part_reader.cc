#include "store/part_reader.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/checksum.h"
#include "format/segment.h"
#include "store/held_file.h"
#include "store/needed_files.h"
#include "store/needed_segment.h"

namespace backstay::store {

namespace {

std::string bytes_of(const format::ChunkEntry& chunk, const std::optional<FileOf>& older) {
  return fmt::format("{}, bytes {} to {} of its object{}", format::object_name(chunk.object),
                     chunk.object_offset, chunk.object_offset + chunk.length - 1,
                     older ? fmt::format(", which lie in version {} (node {}) that it needs,",
                                         older->version, older->node)
                           : "");
}

}  // namespace

Status check_chunk(const format::ChunkEntry& chunk, Bytes payload,
                   const std::optional<FileOf>& older) {
  if (checksum(payload) == chunk.checksum) return {};
  return Error(Code::corrupt, bytes_of(chunk, older) + " do not match their checksum");
}

Status PartReader::open() {
  Status status;
  for (std::size_t tier = 0; tier < tiers_.size(); ++tier) {
    const auto opened = open({tier, file_of(*manifest_)});
    if (opened.ok()) return {};
    status = opened.error();
  }
  return status;
}

Result<tier::Reader*> PartReader::open(const Place& place) {
  auto& reader = readers_[place];
  if (reader) return reader.get();
  const auto& [tier, segment] = place;
  const bool own = segment == file_of(*manifest_);
  auto opened = own ? tiers_[tier]->open(names_of(manifest_->job, segment).data)
                    : open_needed(*tiers_[tier], manifest_->job, segment);
  if (opened.ok()) return (reader = std::move(*opened)).get();
  readers_.erase(place);
  return opened.error();
}

Result<tier::Reader*> PartReader::segment_of(const format::ChunkEntry& chunk) {
  Result<tier::Reader*> found = Error(Code::not_found, "no place to read from");
  for (std::size_t tier = 0; tier < tiers_.size() && !found.ok(); ++tier) {
    found = open({tier, file_with(*manifest_, chunk)});
  }
  return found;
}

void PartReader::start(const format::ChunkEntry& chunk, std::span<std::byte> memory,
                       std::uint64_t tag) {
  const auto [at, fresh] = reads_.try_emplace(tag, Read{&chunk, memory});
  BACKSTAY_CHECK(fresh);
  if (read_first(at->second)) return end(tag, {});
  submit(tag, at->second);
}

bool PartReader::read_first(const Read& read) const {
  const auto memory = read.memory.first(format::slot_bytes(read.chunk->length));
  return first_ && read.chunk->here() && first_(read.chunk->segment_offset, memory) &&
         check_chunk(*read.chunk, memory.first(read.chunk->length)).ok();
}

void PartReader::submit(std::uint64_t tag, Read& read) {
  const auto reader = open({read.tier, file_with(*manifest_, *read.chunk)});
  if (!reader.ok()) return arrived({tag, reader.error()});
  while ((*reader)->in_flight() >= (*reader)->depth()) take_in(**reader, /*wait=*/true);
  (*reader)->read(read.chunk->segment_offset,
                  read.memory.first(format::slot_bytes(read.chunk->length)), tag);
}

std::vector<tier::Done> PartReader::reap(bool wait) {
  do {
    for (const auto& [place, reader] : readers_) {
      if (reader->in_flight() > 0) take_in(*reader, wait && done_.empty());
    }
  } while (wait && done_.empty() && !reads_.empty());
  return std::exchange(done_, {});
}

void PartReader::take_in(tier::Reader& reader, bool wait) {
  for (const tier::Done& done : reader.reap(wait)) arrived(done);
}

void PartReader::arrived(const tier::Done& done) {
  Read& read = reads_.at(done.tag);
  const format::ChunkEntry& chunk = *read.chunk;
  std::optional<FileOf> older;
  if (!chunk.here()) older = file_with(*manifest_, chunk);
  Status status = done.status;
  if (status.ok()) {
    status = check_chunk(chunk, read.memory.first(chunk.length), older);
  } else {
    const Error why = status.error();
    status = Error(why.code(), bytes_of(chunk, older) + " cannot be read: " + why.message());
  }
  if (status.ok()) return end(done.tag, {});
  if (!std::exchange(read.second, true)) return submit(done.tag, read);
  if (++read.tier < tiers_.size()) {
    read.second = false;
    return submit(done.tag, read);
  }
  end(done.tag, std::move(status));
}

void PartReader::end(std::uint64_t tag, Status status) {
  reads_.erase(tag);
  done_.push_back({tag, std::move(status)});
}

Status PartReader::read(const format::ChunkEntry& chunk, std::span<std::byte> memory) {
  start(chunk, memory, 0);
  return reap(/*wait=*/true).front().status;
}

}  // namespace backstay::store
