// Whether the memory of a program is copied while it stands still, or out of a snapshot while it
// runs on (snapshot.h): `checkpoint.snapshot`. Pure.
//
// A snapshot costs the program its fork, and afterwards a fault and a copy for each page that it
// writes first. So it pays where the copy would wait for the disk, and where a copy of so many
// bytes has taken longer than the last snapshot cost.
#pragma once

#include <cstdint>
#include <string_view>

namespace backstay::image {

class SnapshotChoice {
 public:
  // `setting`: auto, copy or fork.
  explicit SnapshotChoice(std::string_view setting)
      : always_(setting == "fork"), never_(setting == "copy") {}

  // For `bytes` of an image; `room` of the pool takes so many without waiting for the disk.
  bool forks(std::uint64_t bytes, std::uint64_t room) const;
  // A copy that was begun waits for the disk.
  bool forks_late() const { return !never_ && copies_due_ == 0; }

  // What it was: the copying alone.
  void copied(std::uint64_t bytes, double seconds);
  // The fork, and what the program lost while the snapshot lived.
  void forked(double seconds, double slow_down_s);
  // The snapshot was killed, and its version given up. A machine that is short of memory would kill
  // the next one, too, so versions are copied before it: 16, or one where the setting is `fork`.
  void killed();

 private:
  const bool always_, never_;
  double copy_s_ = 0;               // of the last copy
  double copy_s_per_byte_ = 0;      // 0: not known
  double fork_s_ = 0;               // with the slow-down
  std::uint32_t forgotten_in_ = 0;  // cuts until that is measured again; 0: not known
  std::uint32_t copies_due_ = 0;    // before the next snapshot
};

}  // namespace backstay::image
