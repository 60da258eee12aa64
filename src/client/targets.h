// The receivers of restored bytes: all regions and files of the session.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "client/files.h"
#include "client/origin.h"
#include "client/place.h"
#include "client/regions.h"
#include "client/restore.h"

namespace backstay::client {

// Distributes chunks over the payloads of an object. Padding, table and footer are only summed.
class Scatter {
 public:
  void clear() { parts_.clear(); }
  void add(std::uint64_t offset, std::uint64_t bytes, const Place& place);
  Status place(std::uint64_t object_offset, Bytes chunk, Checksum* sum) const;
  // Padding, table and footer stay in the chunk. False, and nothing was touched: a part of the
  // chunk does not belong to host memory.
  bool exchange(std::uint64_t object_offset, std::span<std::byte> chunk) const;

 private:
  struct Part {
    std::uint64_t bytes;
    Place place;
  };
  struct Piece {           // of a chunk, in its order and without gaps
    const Place* place;    // nullptr: padding, or another's bytes
    std::uint64_t inside;  // offset in the place
    std::size_t at;        // offset in the chunk
    std::size_t bytes;
  };
  std::vector<Piece> pieces(std::uint64_t object_offset, std::size_t chunk_bytes) const;
  std::map<std::uint64_t, Part> parts_;  // by offset in the object
};

// restart(): regions must be exactly those saved; saved files come back at their paths, routed
// again or not.
class SessionTarget final : public RestoreTarget {
 public:
  SessionTarget(const Regions& regions, const RoutedFiles& files, const Origin& origin)
      : regions_(regions), files_(files), origin_(origin) {}
  std::uint64_t table_bytes() const override;
  // Errors: as Origin::check(); mismatch, whose message names the region, what was saved and what
  // is protected.
  Status match(const format::Table& table) override;
  Status place(std::uint64_t object_offset, Bytes chunk, Checksum* sum) override;
  bool exchange(std::uint64_t object_offset, std::span<std::byte> chunk) override;
  Status finish() override;

 private:
  Status open_files();
  const Regions& regions_;
  const RoutedFiles& files_;
  const Origin& origin_;
  Scatter scatter_;
  std::vector<format::Region> saved_files_;
  std::vector<ReturningFile> open_;
};

}  // namespace backstay::client
