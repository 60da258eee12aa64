// The functions of backstay_streams.h on a session. The session must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "client/session.h"

namespace backstay::client {

class StreamSession {
 public:
  explicit StreamSession(Session& session) : session_(session) {}

  // Each as the function of its name; arguments are not NULL.
  Result<Streams::Id> open(const std::string& name);
  Status write(Streams::Id id, const void* data, std::size_t bytes);
  Status close(Streams::Id id) { return session_.streams_.close(id); }
  Result<std::uint64_t> count(VersionNumber version);
  Result<format::Stream> at(VersionNumber version, std::uint64_t index);
  Result<std::uint64_t> bytes(VersionNumber version, const std::string& name);
  Status read(VersionNumber version, const std::string& name, std::uint64_t offset, void* data,
              std::size_t bytes);

  // All of it, exactly `bytes`; untouched on failure. Errors: not_found, mismatch, and those of
  // read().
  Status read_whole(VersionNumber version, const std::string& name, void* data, std::size_t bytes);

 private:
  using All = const std::vector<format::Stream>*;
  Result<All> saved(VersionNumber version);
  Result<const format::Stream*> find(VersionNumber version, const std::string& name);
  SavedStreams::Place place(VersionNumber version) const;

  Session& session_;
};

}  // namespace backstay::client
