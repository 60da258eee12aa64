#include "agent/disk/chunk_reads.h"

#include <utility>

#include "base/check.h"
#include "format/segment.h"

namespace backstay::agent {

void ChunkReads::begin(const FileOf& segment, std::unique_ptr<tier::Reader> reader) {
  reading_ = Reading{.segment = segment, .reader = std::move(reader)};
}

bool ChunkReads::open() const {
  return reading_ && (reading_->reader->in_flight() > 0 || !reading_->arrived.empty());
}

void ChunkReads::read(const ReadChunk& command) {
  tier::Reader& reader = *reading_->reader;
  if (reader.in_flight() >= reader.depth()) {
    post_arrived();
    collect(true);
  }
  const std::uint64_t tag = reading_->next_tag++;
  reading_->reads.emplace(
      tag, ChunkRead{command.version, command.buffer, command.ticket, {}, command.chunk.length});
  reader.read(command.chunk.segment_offset,
              command.memory.first(format::slot_bytes(command.chunk.length)), tag);
}

void ChunkReads::reap(bool wait) {
  collect(wait && reading_->arrived.empty());
  if (wait) post_arrived();
}

void ChunkReads::collect(bool wait) {
  for (const tier::Done& done : reading_->reader->reap(wait)) {
    auto node = reading_->reads.extract(done.tag);
    BACKSTAY_CHECK(!node.empty());
    node.mapped().status = done.status;
    reading_->arrived.push_back(std::move(node.mapped()));
  }
}

void ChunkReads::post_arrived() {
  for (ChunkRead& event : reading_->arrived) post_event_(std::move(event));
  reading_->arrived.clear();
}

void ChunkReads::finish() {
  while (open()) reap(true);
  reading_.reset();
}

}  // namespace backstay::agent
