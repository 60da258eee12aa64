// A node's file on its way into a tier: its data (a segment, or parity) piece by piece and in any
// order, then its manifest. Nothing else writes data.
//
// Steps, each a failpoint of the writer's purpose ("commit", "copy", "keep", "parity"):
//   .1  every piece is written
//   .2  the data is sealed: its content and size are on the device, for copies and parity its name
//   .3  the manifest is put: the file exists from here on
// A crash before .3 leaves data without a manifest, which is no file.
//
// One thread at a time. open(), seal() and publish() block on the tier.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/aligned_memory.h"
#include "format/segment.h"
#include "store/held_file.h"
#include "tier/tier.h"

namespace backstay::store {

class FileWriter {
 public:
  // The tier must live longer.
  FileWriter(tier::Tier& tier, const std::string& job, const FileOf& file, std::string purpose);

  const FileNames& names() const { return names_; }
  // Makes the data; `bytes`: a guess. May be tried again. Errors: those of Tier::create().
  Status open(std::uint64_t bytes);
  bool is_open() const { return writer_ != nullptr; }  // and not sealed
  unsigned depth() const { return writer_->depth(); }
  unsigned in_flight() const { return writer_ ? writer_->in_flight() : 0; }
  // The rest needs a writer that is open. A segment's header; no tag of write() is UINT64_MAX.
  void write_header(const format::SegmentHeader& header);
  // Offset, length and address are multiples of 4096; the memory stays valid until it is reaped.
  void write(std::uint64_t offset, Bytes piece, std::uint64_t tag);
  // Pieces that are written, or failed; may be none. Blocks for at least one request if `wait` and
  // one is in flight.
  std::vector<tier::Done> reap(bool wait);
  // How the header fared, as far as is known.
  const Status& header() const { return header_written_; }

  // `name_too`: the name of the data is safe before its manifest can be. Precondition: nothing is
  // in flight. Errors: of a piece; no_space, io.
  Status seal(std::uint64_t bytes, bool name_too = false);
  // Once it is sealed. Errors: those of Tier::put().
  Status publish(Bytes manifest);
  // Gives up what is written.
  void close() { writer_.reset(); }

 private:
  void step(char number) const;

  tier::Tier& tier_;
  const FileNames names_;
  const std::string purpose_;
  std::unique_ptr<AlignedMemory> header_;
  Status header_written_;
  std::unique_ptr<tier::Writer> writer_;  // ends first: its requests may still read the header
};

}  // namespace backstay::store
