// The messages between programs, tools and the agent of a node (docs/protocol/agent.md), as
// structs, whose members are sent in their order (codec.h). Nothing here does I/O.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/alternative.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "wire/cut_message.h"
#include "wire/limits.h"

namespace backstay::wire {

inline constexpr std::uint16_t protocol_version = 1;

// A chunk that lies in a pool buffer.
struct ChunkInPool {
  std::uint32_t buffer = 0;  // index in the pool
  std::uint32_t length = 0;  // bytes, at most one buffer
  std::uint64_t object_offset = 0;
  std::uint64_t checksum = 0;
};

// rank -> agent
struct Hello {
  std::string release;  // library's release, for messages
  std::string job;
  RunId run = 0;  // chosen by rank 0, the same on all ranks
  Rank rank = 0;
  std::uint32_t ranks = 1;
  std::uint32_t local_rank = 0;
  std::uint32_t local_ranks = 1;
  NodeId node = 0;
  std::uint32_t nodes = 1;
  std::int32_t pid = 0;     // for messages
  std::string dir;          // absolute path of the local tier
  std::uint32_t keep = 2;   // complete versions to keep
  std::string durable_dir;  // absolute path of the durable directory; "": none
  std::uint32_t durable_every = 1;
  std::uint32_t durable_keep = 2;
  std::uint64_t durable_bytes_per_s = 0;  // 0: no limit
  std::uint32_t drain_nodes_max = 0;      // 0: all
  std::uint32_t replicas = 0;             // on other nodes, with several nodes
  std::string parity;                     // "k,m" instead of replicas; "": none
  std::uint64_t protect_bytes_per_s = 0;  // limit for making them; 0: none
  std::string secret;  // of the run, for its agents: 64 hexadecimal digits; "" with one node
};
struct Begin {
  VersionNumber version = 0;
  std::uint64_t object_bytes = 0;
};
struct Filled {
  VersionNumber version = 0;
  std::vector<ChunkInPool> chunks;
};
// A chunk of the rank's object in an older version.
struct KeptChunk {
  std::uint64_t offset = 0;  // in that object
  std::uint32_t length = 0;
};
// The front of the object, before Begin: chunks of an older version, as they are. The agent knows
// where they lie.
struct Kept {
  VersionNumber version = 0;
  VersionNumber base = 0;  // that has them
  std::uint64_t left = 0;  // bytes of the object that will be filled
  std::vector<KeptChunk> chunks;
};
struct End {
  VersionNumber version = 0;
  // Of a program that is stopped to be saved: how long it stood still; 0: it is none, or has
  // ended.
  std::uint64_t stopped_ns = 0;
  bool snapshot = false;  // its object was read out of a copy of the process
};
struct Query {
  VersionNumber version = 0;
};
struct Await {  // answered by LevelIs once the level is reached or cannot be any more
  VersionNumber version = 0;
  Level level = Level::local;
};
struct Restart {
  VersionNumber version = 0;  // 0: the newest
  RunId run = 0;              // of the version; 0: any
};
struct Verified {
  VersionNumber version = 0;
  std::vector<std::uint32_t> buffers;
  bool good = true;
  std::string why;            // if not good: the damage
  std::uint32_t attempt = 0;  // of the Plan that the chunks belong to
  bool placed = false;        // the rank has taken them already
};
struct Refuse {
  VersionNumber version = 0;
  Code code = Code::mismatch;
  std::string message;
};
struct Restored {
  VersionNumber version = 0;
  Code code = Code::ok;
};
struct Withdrawn {  // answer to Withdraw: the agent owns the plan's buffers again
  VersionNumber version = 0;
  std::uint32_t attempt = 0;
};
struct Fetch {  // a range of one rank's object; all of it by default
  VersionNumber version = 0;
  Rank rank = 0;
  std::uint64_t begin = 0;
  std::uint64_t bytes = UINT64_MAX;  // cut to what the object has
  bool last = false;                 // the last `bytes` of the object; begin is not used
  RunId run = 0;                     // of the version; 0: any

  std::uint64_t begin_in(std::uint64_t object_bytes) const {
    return last ? object_bytes - std::min(bytes, object_bytes) : std::min(begin, object_bytes);
  }
  std::uint64_t end_in(std::uint64_t object_bytes) const {
    const std::uint64_t from = begin_in(object_bytes);
    return from + std::min(bytes, object_bytes - from);
  }
};
struct Candidates {  // several nodes: the newest recorded version here that is older than this one
  VersionNumber below = 0;  // 0: the newest of all
  RunId below_run = 0;  // of two runs that used the same number, the smaller one counts as older
};
struct Proceed {  // several nodes: the agreement of all ranks of the job at Ready
  VersionNumber version = 0;
  std::uint32_t attempt = 0;
  bool good = true;  // else the plan is withdrawn
};
struct Request {
  std::string job;
  bool stop = false;
};
// Another agent of the run (docs/protocol/peers.md).
struct Neighbour {
  NodeId node = 0;
  std::string address;
  std::string domain;  // its failure domain; "": one of its own
};
struct Neighbours {  // from the first rank of each node, in one message or several
  bool last = true;
  std::vector<Neighbour> neighbours;
};
struct Goodbye {};

// writer -> agent: a process that is no rank and whose files are captured
struct Join {               // in place of Hello; answered by Welcome
  std::string release;      // library's release, for messages
  std::string job;          // the job of this node's captured files
  std::int32_t pid = 0;     // for messages
  std::string dir;          // absolute path of the local tier
  std::uint32_t keep = 2;   // complete versions to keep
  std::string durable_dir;  // absolute path of the durable directory; "": none
  std::uint32_t durable_keep = 2;
  std::uint64_t durable_bytes_per_s = 0;  // 0: no limit
};
struct Open {                 // a new version, of one object whose length is not known yet
  std::uint32_t buffers = 1;  // wanted at once
};
struct More {
  VersionNumber version = 0;
  std::uint32_t buffers = 1;  // wanted beside those that it has, or asked for before
};
struct Finish {  // in place of End
  VersionNumber version = 0;
  std::uint64_t object_bytes = 0;  // its length
};
// When the newest captured bytes of a file are at its own path (docs/protocol/home.md).
struct BringHome {   // answered by AtHome
  std::string path;  // of one file; all below a folder where it ends in "/"; "": all
};
// The program has renamed a file that is not at its path yet: it shall come to the new one.
struct MoveHome {  // answered by MovedHome
  VersionNumber version = 0;
  RunId run = 0;  // of the version; 0: not known
  std::string from;
  std::string to;
  std::uint64_t placed_ns = 0;  // of the new path
};
// What programs have written into captured files since the message before (docs/format/events.md).
struct WriteSize {
  std::uint64_t below = 0;  // bytes of each write are fewer; 0: no limit
  std::uint64_t writes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t ns = 0;
};
struct CallWait {
  std::string call;
  std::uint64_t calls = 0;
  std::uint64_t ns = 0;
  std::uint64_t longest_ns = 0;
};
struct NoteWrites {  // no answer
  std::uint64_t captured_files = 0;
  std::uint64_t captured_bytes = 0;
  std::uint64_t direct_files = 0;
  std::uint64_t direct_bytes = 0;
  std::uint64_t real_files = 0;
  std::uint64_t real_bytes = 0;
  std::vector<WriteSize> sizes;
  std::vector<CallWait> waits;
};
struct Abandon {  // the rank or writer gives it up, or has heard that it was given up
  VersionNumber version = 0;
  Code code = Code::ok;  // of a rank that cannot hand over the rest of its object: why
  std::string message = {};
};

// tool -> agent
struct Admin {};
struct Status {};
struct Shutdown {
  bool drain = true;  // bring captured versions to local first
};
struct Forget {  // a version that the tool is about to remove
  std::string job;
  std::string dir;
  VersionNumber version = 0;
};
struct AwaitNewer {  // answered once a version after `after` is at `level`, or could not get there
  std::string job;
  std::string dir;
  VersionNumber after = 0;
  Level level = Level::local;
};
struct Where {  // on which nodes' disks the files of a version are
  std::string job;
  std::string dir;
  VersionNumber version = 0;
};

struct Copied {  // a tool says: another host has a copy of this version of captured files
  std::string job;
  std::string dir;
  VersionNumber version = 0;
  RunId run = 0;
};
struct EndRanks {  // those of this run that are connected to this agent
  std::string job;
  std::string dir;
  RunId run = 0;
};

// agent -> rank or tool
struct Setting {  // of the configuration that the agent was started with
  std::string key;
  std::string value;  // as written in the file
};
struct Welcome {  // with two descriptors: pool, control page
  std::string release;
  std::uint64_t pool_bytes = 0;
  std::uint32_t buffer_bytes = 0;
  std::uint32_t home_first = 0;  // preferred buffers of this rank
  std::uint32_t home_count = 0;
  VersionNumber newest = 0;       // highest number ever used in this job; the next is newest + 1
  bool finished = false;          // the run before this one ended by itself
  std::string address;            // for the run's other agents; "" with one node
  std::vector<Setting> settings;  // its own, which hold for all programs until it ends
  RunId run = 0;                  // a writer hears here which run it has joined
  std::uint32_t writer = 0;       // its number in that run; 0 to a rank
};
struct Opened {               // answer to Open
  VersionNumber version = 0;  // 0: none was begun
  Code code = Code::ok;
  std::string message;
};
struct AtHome {
  std::string path;  // as in BringHome
  Code code = Code::ok;
  std::string message;  // why a file is not at its path; with ok: it is kept for good
};
struct MovedHome {
  VersionNumber version = 0;
  std::string to;        // as in MoveHome
  Code code = Code::ok;  // else nothing has changed
  std::string message;
};
struct Grant {
  VersionNumber version = 0;
  std::vector<std::uint32_t> buffers;
};
struct Captured {  // answer to End, and to Restored
  VersionNumber version = 0;
  Code code = Code::ok;
  std::string message;  // with ok: a warning to the program about versions that are not safe
};
struct LevelIs {
  VersionNumber version = 0;
  Level level = Level::none;
  Code code = Code::ok;  // why the version cannot reach a higher level
  std::string message;
};
struct Plan {  // the version to restart; forget every chunk seen so far
  VersionNumber version = 0;
  std::uint64_t object_bytes = 0;
  bool from_pool = false;
  Code code = Code::ok;  // not ok: the restart (or fetch) has failed and nothing was delivered
  std::string message;
  std::uint32_t attempt = 0;      // counts the plans of one restart; the answers repeat it
  std::uint32_t saved_ranks = 0;  // how many ranks saved the version; 0: not known
  bool may_be_base = false;       // once it is local, chunks of it may be kept by the next version
};
struct Chunks {
  VersionNumber version = 0;
  // Stay in their buffers until Restored or Withdrawn. The rank may exchange their bytes with what
  // its regions hold, unless the plan is from the pool: the pool's copy of a version stays as it
  // is.
  bool held = false;
  std::vector<ChunkInPool> chunks;
  std::uint32_t attempt = 0;  // of the Plan that they belong to
};
struct Deliver {
  VersionNumber version = 0;
};
struct Candidate {  // answer to Candidates
  VersionNumber version = 0;
  RunId run = 0;
  Code code = Code::ok;  // none: there is none; another code: not known
  std::string message;
  std::uint32_t saved_ranks = 0;
};
// Several nodes, in place of Deliver: the ranks of this node have verified everything.
struct Ready {
  VersionNumber version = 0;
  std::uint32_t attempt = 0;
};
struct Withdraw {  // the present Plan is given up: exchange its chunks back
  VersionNumber version = 0;
  std::uint32_t attempt = 0;
};
struct Answer {
  Code code = Code::ok;
  std::string json;
};
struct Failure {  // the connection ends after it
  Code code = Code::internal;
  std::string message;
};

// The order is the type number on the wire, from 1: append only.
class Message
    : public std::variant<Hello, Begin, Filled, End, Query, Await, Restart, Verified, Refuse,
                          Restored, Fetch, Request, Goodbye, Admin, Status, Shutdown, Welcome,
                          Grant, Captured, LevelIs, Plan, Chunks, Deliver, Answer, Failure,
                          Withdraw, Withdrawn, Forget, AwaitNewer, Neighbours, Candidates,
                          Candidate, Ready, Proceed, Where, EndRanks, Join, Open, Opened, More,
                          Finish, Abandon, BringHome, AtHome, MoveHome, MovedHome, AskCut,
                          CutReport, RefuseCut, CutOrder, CutOver, NoteWrites, Kept, Copied> {
 public:
  template <AlternativeOf<variant> T>
  Message(T&& value)  // NOLINT(google-explicit-constructor): as a variant
      : variant(std::in_place_type<std::remove_cvref_t<T>>, std::forward<T>(value)) {}
  Message();
  Message(const Message& other);
  Message(Message&& other) noexcept;
  Message& operator=(const Message& other);
  Message& operator=(Message&& other) noexcept;
  ~Message();
};

// One packet. Errors: too_large (a list over list_entries_max, or more than message_bytes_max in
// all), invalid (a text with a zero byte).
Result<Buffer> encode(const Message& message);

// Never allocates more than a packet can hold, even if the packet is malformed.
// Errors: protocol (another protocol version; the message names both), invalid (anything else).
Result<Message> decode(Bytes packet);

}  // namespace backstay::wire
