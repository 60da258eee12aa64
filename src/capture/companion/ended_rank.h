// What a version holds of a rank whose program has ended: an object of no regions with a note
// (docs/format/object.md, "Note").
#pragma once

#include "client/capture.h"
#include "client/origin.h"
#include "format/object.h"

namespace backstay::image {

class EndedRank final : public client::ObjectSource {
 public:
  // `base`: of the version (client/object_session.h).
  EndedRank(const client::Origin& origin, VersionNumber base);

  std::uint64_t object_bytes() const override { return object_.size(); }
  Kept kept() const override { return {base_, {}}; }
  Result<std::uint64_t> read_next(std::span<std::byte> to) override;

 private:
  const VersionNumber base_;
  Buffer object_;
  std::size_t read_ = 0;
};

// Whether this is the table of such an object.
bool is_of_ended_rank(const format::Table& table);

}  // namespace backstay::image
