// The peer file thread of one job: disk work on behalf of other agents, in a thread of its own, so
// that neither the store nor the drain nor the main loop ever waits for a neighbour. It reads files
// of nodes for other agents and writes the copies that this node keeps (docs/protocol/peers.md). It
// has a tier of its own on the job's folder, which must not recycle files.
//
// The main loop posts commands and never waits. The answer to a command is its `done`, which comes
// back as an event: the peer file thread never calls it. Answers come in order of completion.
//
// Memory belongs to the peer file thread from the command until its answer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/version/held_files.h"
#include "agent/version/pooled_part.h"
#include "agent/version/stored.h"
#include "base/clock.h"
#include "format/manifest.h"
#include "store/incoming_parity.h"
#include "store/incoming_replica.h"
#include "tier/tier.h"

namespace backstay::agent {

// --- commands ------------------------------------------------------------------------------------

// Every file whose manifest is good and whose segment is there, of versions that are not set aside.
// Reads all manifests.
struct ListFiles {
  std::function<void(Result<std::vector<HeldFile>>)> done;
};
// Errors: not_found (no such file, or of another run), corrupt (it ends before, or the manifest is
// damaged), io.
struct ReadPiece {
  FileOf file;
  std::uint64_t offset = 0;  // a multiple of 4096, as the size
  std::span<std::byte> memory;
  std::function<void(Status)> done;
  std::shared_ptr<const PooledPart> pooled = {};  // read first; null: the disk alone has it
};
// The manifest's bytes. Errors: as above.
struct ReadFileManifest {
  FileOf file;
  std::function<void(Result<Buffer>)> done;
};
// Begins a copy, in place of one of the same file that was begun. Errors: those of
// IncomingReplica::open(); nothing is left then.
struct OpenCopy {
  FileOf file;
  Buffer manifest;
  std::uint64_t segment_bytes = 0;
  std::uint64_t piece_bytes_max = 0;
  std::function<void(Result<std::vector<store::Piece>>)> done;  // empty: all of it is there
  bool replace = false;  // what is there of it is damaged and does not count
};
// Begins parity, in place of what was begun of it. Errors: those of IncomingParity::open(); nothing
// is left then.
struct OpenParity {
  format::ParityManifest manifest;  // but for its checksums
  std::function<void(Status)> done;
};
// Of a copy or parity that is open.
// Errors: corrupt (the piece is not what the manifest says, nothing was written), no_space, io.
struct WritePiece {
  FileOf file;
  std::uint64_t offset = 0;
  Bytes memory;
  std::function<void(Status)> done;
};
// The file exists and is safe. Errors: those of IncomingFile::seal(); nothing is left then.
struct SealCopy {
  FileOf file;
  std::optional<format::CommitRecord> record;
  std::function<void(Result<HeldFile>)> done;
};
// A file that is there already, as an agent that died here left it, is safe from a crash
// afterwards. Errors: not_found (also where it is another run's), corrupt, format, io.
struct SyncFile {
  FileOf file;
  std::function<void(Result<HeldFile>)> done;
};
struct AbandonCopy {  // takes away what was written of it
  FileOf file;
};
// Arithmetic on memory that belongs to the peer file thread meanwhile.
struct Compute {
  std::function<void()> work;
  std::function<void(Status)> done;  // with ok
};
using PeerFileCommand = std::variant<ListFiles, ReadPiece, ReadFileManifest, OpenCopy, WritePiece,
                                     SealCopy, SyncFile, AbandonCopy, OpenParity, Compute>;

// To be called in the main loop.
using PeerFileEvent = std::function<void()>;

class PeerFileLink {
 public:
  virtual ~PeerFileLink() = default;
  virtual void post(PeerFileCommand command) = 0;
};

// What the peer file thread does, without the thread: a test may play it step by step. One thread.
class PeerFileWorker {
 public:
  using MakeTier = std::function<Result<std::unique_ptr<tier::Tier>>()>;
  using PostEvent = std::function<void(PeerFileEvent)>;
  // The tier is made for the first command; where that fails the command does, and the next one
  // tries again.
  PeerFileWorker(std::string job, MakeTier make_tier, PostEvent post_event, const Clock& clock);
  ~PeerFileWorker();

  void handle(PeerFileCommand command);
  // Requests to the disk are in flight: step() is to be called.
  bool busy() const;
  // Takes in what has completed; blocks for at least one request if `wait`.
  void step(bool wait);
  // A file is closed after a second without a read, as an open one keeps its room on the disk
  // after it was removed.
  void close_idle();
  // When close_idle() has something to do; no_deadline: never.
  std::uint64_t closes_at_ns() const;

  // For DiskThread. At its end what is under way is given up: what was written of a copy stays,
  // without a manifest.
  std::uint64_t wakes_ns() const { return busy() ? 0 : closes_at_ns(); }
  void carry_on(bool wait) {
    if (busy()) step(wait);
    close_idle();
  }
  void finish() {}

 private:
  struct Read {
    std::uint64_t offset = 0;
    std::span<std::byte> memory;
    std::function<void(Status)> done;
  };
  struct Reading {                        // members in the order of their death
    std::map<std::uint64_t, Read> reads;  // by tag
    std::unique_ptr<tier::Reader> reader;
    std::shared_ptr<const format::ParityManifest> parity;  // of parity: what it must be like
    std::uint64_t next_tag = 0;
    std::uint64_t used_ns = 0;
  };

  void handle(ListFiles& command);
  void handle(ReadPiece& command);
  void handle(ReadFileManifest& command);
  void handle(OpenCopy& command);
  void handle(WritePiece& command);
  void handle(SealCopy& command);
  void handle(SyncFile& command);
  void handle(AbandonCopy& command);
  void handle(OpenParity& command);
  void handle(Compute& command);

  // The answer's way to the main loop.
  template <typename Done, typename Value>
  void answer(Done done, Value value) {
    post_event_(
        [done = std::move(done), value = std::move(value)]() mutable { done(std::move(value)); });
  }
  template <typename Done>
  Done posted(Done done);

  Status open_tier();
  Result<Reading*> open(const FileOf& file);
  Status open_reader(const FileOf& file, Reading& reading);
  Result<std::vector<HeldFile>> list();
  void list_version(VersionNumber version, std::vector<HeldFile>& found);
  Result<HeldFile> look_at_file(VersionNumber version, const std::string& name, bool parity);
  Result<std::vector<store::Piece>> begin(OpenCopy& command);
  Result<HeldFile> seal(const SealCopy& command);
  Result<HeldFile> sync(const FileOf& file);
  void drop(const FileOf& file);
  bool reap(Reading& reading, bool wait);

  const std::string job_;
  const MakeTier make_tier_;
  const PostEvent post_event_;
  const Clock& clock_;
  std::unique_ptr<tier::Tier> tier_;
  std::map<FileOf, Reading> readings_;
  std::map<FileOf, std::unique_ptr<store::IncomingFile>> copies_;
};

}  // namespace backstay::agent
