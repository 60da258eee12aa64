// The streams that a rank writes between two checkpoints (include/backstay/backstay_streams.h,
// docs/format/streams.md): the front of its next object, straight into buffers of the pool.
//
//   open, write ..., close     any number, any order, in turn; nothing of it needs the other ranks
//   ready()                    all are closed: the object's first region is known
//   hand_over()                the last buffer, after which the rest of the object follows
//   taken(), or give_up()      the version has them, or they are dropped; names are free again
//
// The first byte begins the version at the agent. Between calls this holds one buffer at most, the
// one that it fills, and has asked for none: other conversations with the agent lose nothing, a
// rank that computes keeps no other buffer from others, and one that waits keeps none. After an
// error of write() everything written so far is lost: each call repeats the error until give_up().
// One thread at a time, as the session.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "client/connection.h"
#include "client/place.h"
#include "client/pool_fill.h"
#include "format/streams.h"

namespace backstay::client {

class Streams {
 public:
  using Id = std::uint64_t;  // never the same twice in a session, never 0

  // Errors: invalid, too_large (the name, or too many streams), duplicate, and that of a write.
  Result<Id> open(const std::string& name);
  // Copies `bytes` bytes behind those before, as part of `version`. Blocks while the pool is full.
  // `agent`: null: it is lost.
  // Errors: state (no such stream is open), the agent's reason for giving the version up,
  // agent_lost, io (of a GPU).
  Status write(Connection* agent, VersionNumber version, Id id, const Place& from,
               std::uint64_t bytes);
  // Errors: state, and that of a write.
  Status close(Id id);
  bool has(const std::string& name) const { return by_name_.contains(name); }

  // Ok if a version can take them: all are closed, and nothing is lost. Errors: state (names one
  // that is open), that of a write.
  Status ready() const;
  bool any() const { return !streams_.empty(); }
  bool were_used() const { return first_id_ + streams_.size() > 1; }  // in this session
  // A version was begun for them: its number counts as used up.
  bool begun() const { return begun_; }
  // Bytes that lie in front of the index in the object.
  std::uint64_t bytes() const { return fill_.bytes(); }
  // Index and trailer. Precondition: ready(), any().
  Buffer index() const { return format::encode_streams(streams_, bytes()); }
  // Errors: agent_lost.
  Status hand_over() { return fill_.hand_over(); }

  // The version is captured.
  void taken() { forget(); }
  // Nothing of it is kept. Tells the agent, if it still listens.
  void give_up();
  // The connection is about to end, and what was written with it.
  void agent_is_lost();

 private:
  format::Stream* find_open(Id id);
  Error not_open(Id id) const;
  Status fail(const Error& why);
  void forget();

  std::vector<format::Stream> streams_;  // in the order of opening
  std::vector<bool> open_;               // likewise
  std::unordered_map<std::string, std::size_t> by_name_;
  Id first_id_ = 1;  // of streams_.front()
  PoolFill fill_{{16, /*asks_ahead=*/false, "streams.more", "streams.filled"}};
  bool begun_ = false;
  std::optional<Error> failed_;
};

}  // namespace backstay::client
