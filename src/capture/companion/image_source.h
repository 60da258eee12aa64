// The image of a program as the object of a version: the boot program, or a snapshot of the
// program, copies its pages straight into the pool. The program stands still until complete(), or
// until there is a snapshot; where it ends behind the version, until its owner ends it or lets it
// go on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "capture/companion/boot_process.h"
#include "capture/companion/full_every.h"
#include "capture/companion/kernel_work.h"
#include "capture/companion/snapshot.h"
#include "capture/companion/snapshot_choice.h"
#include "client/capture.h"

namespace backstay::image {

// What one cut was, for who decides about the next. It outlives the source.
struct CutRecord {
  std::uint64_t bytes = 0;       // of the image; 0: none was made
  std::uint64_t kept_bytes = 0;  // of these
  bool forked = false;           // there is a snapshot: the program runs on
  bool all_copied = false;
  bool killed = false;  // the snapshot was, before all was copied
  double copy_s = 0, fork_s = 0, slow_down_s = 0;
  std::optional<Error> no_snapshot;  // why there is none that was wanted
  std::uint64_t contents = 0;        // files whose contents it has
  std::string not_in_image;          // requests.h, `cut`: a file; "": none
};

class ImageSource final : public client::ObjectSource {
 public:
  struct What {
    std::string notes;     // at most notes_max - 1 bytes, kept in the image
    bool tersely = false;  // an error need not name a child
    FullEvery::Cut cut = {};
    VersionNumber base = 0;                  // of the version; the cut may keep chunks of it
    const SnapshotChoice* choice = nullptr;  // null: the program stands still to the end
    bool ends = false;                       // complete() does not let it go on. Without a choice
    std::function<int()> attend = nullptr;   // as ObjectSource's; once the program runs on
  };
  // Stops the program. `record` outlives the source. Errors: busy (the program has a child),
  // unsupported (the program cannot be saved now; says why), rank_lost (it has ended).
  static Result<std::unique_ptr<ImageSource>> begin(BootProcess& boot, client::Connection& agent,
                                                    const What& what, CutRecord& record);
  ~ImageSource() override;

  std::uint64_t object_bytes() const override { return record_.bytes; }
  std::uint64_t handed_over() const override { return record_.kept_bytes; }
  Kept kept() const override { return kept_; }
  Result<std::uint64_t> read_next(std::span<std::byte> to) override;
  void complete() override;
  int attend() override;
  std::optional<Stop> stop() const override { return stop_; }

 private:
  ImageSource(BootProcess& boot, What what, CutRecord& record)
      : boot_(boot), what_(std::move(what)), record_(record) {}
  Result<Answer> ask(const Request& request);
  Status ask_kept();
  Status check_table(Bytes piece);
  void fork();
  void resume();

  BootProcess& boot_;
  const What what_;
  CutRecord& record_;
  Kept kept_;
  std::uint64_t left_ = 0;         // bytes that were not read yet
  std::uint64_t table_bytes_ = 0;  // of the object, its end
  Buffer table_;                   // what was read of it
  std::unique_ptr<Snapshot> snapshot_;
  bool stopped_ = true;
  bool stays_ = false;    // stopped, though all of it was copied
  bool may_fork_ = true;  // it was not tried
  const std::uint64_t began_ns_ = system_clock().monotonic_ns();
  std::uint64_t idle_since_ns_ = 0;  // there was no buffer to fill
  KernelWork work_;                  // for the program, when the snapshot was made
  std::optional<Stop> stop_;
};

}  // namespace backstay::image
