// The data that one checkpoint saves of this rank: its regions and routed files, laid out as an
// object (docs/format/object.md). Files are opened here, so that a missing one is found before
// anything is sent.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/result.h"
#include "client/capture.h"
#include "client/files.h"
#include "client/place.h"
#include "client/regions.h"
#include "client/streams.h"
#include "format/object.h"

namespace backstay::client {

class Snapshot final : public ObjectSource {
 public:
  // Waits for a GPU's work on device regions. Of `streams`, which are ready(), it has the index:
  // what was written to them goes before it. Errors: invalid (a file), io (a GPU).
  static Result<Snapshot> of(const Regions& regions, const RoutedFiles& files,
                             const std::vector<format::Note>& notes, const Streams& streams);

  std::uint64_t object_bytes() const override { return table_offset_ + tail_.size(); }
  std::uint64_t handed_over() const override { return streams_bytes_; }

  // The object's fields, which follow each other: each region with the zeros behind it, then the
  // table. Small neighbours are one field, as each costs a chunk and a message.
  std::vector<std::uint64_t> field_bytes() const;

  // Copies and sums in one pass. Errors: invalid (a routed file became shorter), io.
  Result<std::uint64_t> read_next(std::span<std::byte> to) override;

 private:
  void add_streams(const Streams& streams);
  Status add_files(const RoutedFiles& files);
  Result<std::size_t> read_piece(std::span<std::byte> to);

  std::vector<format::Region> regions_;
  std::vector<Place> places_;  // one a region
  std::vector<OpenFile> files_;
  std::uint64_t streams_bytes_ = 0;
  Buffer streams_index_;  // behind them
  std::uint64_t table_offset_ = 0;
  Buffer tail_;
  std::unique_ptr<Checksum> sum_ = std::make_unique<Checksum>();
  std::uint64_t at_ = 0;    // in the object
  std::size_t region_ = 0;  // that `at_` is in, or in the padding behind it
};

}  // namespace backstay::client
