// Reading the streams of a saved version (docs/format/streams.md).
//
// Keeps the index of one version, and the last piece of it that was read, so that a program that
// reads many small streams one after the other asks the agent once for each buffer's worth of them.
// A version's bytes never change, so what is kept stays right. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "client/fetch.h"
#include "format/streams.h"

namespace backstay::client {

class SavedStreams {
 public:
  // Whose streams. `run`: 0: any.
  struct Place {
    Connection& agent;
    VersionNumber version;
    Rank rank;
    RunId run;
  };

  // In the order in which they were opened; valid until the next call of another version. None: the
  // version has no streams. Errors: those of a fetch.
  Result<const std::vector<format::Stream>*> of(const Place& place);
  // nullptr: there is none of that name. Precondition: of() has succeeded for this version.
  const format::Stream* find(const std::string& name) const;
  // Bytes from `offset` of the stream on. `to` may hold a part of them after an error.
  // Precondition: as of find(); the range lies within the stream. Errors: those of a fetch.
  Status read(const Place& place, const format::Stream& stream, std::uint64_t offset,
              std::span<std::byte> to);

 private:
  Status load(const Place& place);
  Status read_payload(const Place& place, std::uint64_t offset, std::span<std::byte> to);
  Status read_ahead(const Place& place, std::uint64_t offset);

  std::pair<VersionNumber, RunId> have_{0, 0};
  std::uint64_t bytes_ = 0;  // of all streams
  std::vector<format::Stream> streams_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::uint64_t window_begin_ = 0;
  Buffer window_;
};

}  // namespace backstay::client
