// A saved process that is brought back: the boot program checks that this machine has what the
// image needs and maps its memory; the chunks are copied there from the pool; go() lets the program
// go on. Until then nothing of it has run, and a failure ends the new process alone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/companion/boot_process.h"
#include "capture/image/format/image.h"
#include "client/origin.h"
#include "client/restore.h"

namespace backstay::image {

// The notes of a version (docs/format/object.md, "Note") as the text that an image keeps.
std::string text_of(const std::vector<format::Note>& notes);
std::vector<format::Note> notes_of(std::string_view text);

class ImageTarget final : public client::ObjectTarget {
 public:
  // The first two must outlive it. `life`: as BootProcess::start() has it. `tells`: speaks to the
  // user.
  ImageTarget(const client::Origin& origin, const client::Connection& agent, LifeOptions life,
              bool tells)
      : origin_(origin), agent_(agent), life_(std::move(life)), tells_(tells) {}

  std::uint64_t table_bytes() const override;
  Result<std::uint64_t> tail_bytes(Bytes footer, std::uint64_t object_bytes) override;
  // Starts the process. Errors: as ObjectTarget; mismatch (this machine lacks what each image of
  // the program needs), not_found (it lacks what this one needs), io (the process has broken down).
  Status match_tail(Bytes tail, std::uint64_t object_bytes) override;
  Status place(std::uint64_t object_offset, Bytes chunk, Checksum* sum) override;
  bool exchange(std::uint64_t, std::span<std::byte>) override { return false; }
  bool takes_early() const override { return true; }
  Status finish() override;

  // After finish(): how many versions lead to this one, where the next may keep chunks of it.
  std::optional<std::uint32_t> chain() const { return chain_; }
  // Then, before make_ready(): from now on the program's writes are watched, so that its next image
  // may keep chunks of this one. False: they are not.
  bool watch();
  // After finish(), once: all that may fail before the program goes on. Errors: as match_tail().
  Status make_ready();
  // After make_ready(), once: the program goes on.
  void go();
  // The program, after go(); null where it had ended when it was saved.
  std::unique_ptr<BootProcess> take() { return std::move(boot_); }
  // It was not brought back, and another try with the same image would end so, too.
  bool refused() const { return refused_; }
  // Its command line, as command_text() has it; "": the image does not say it.
  const std::string& command() const { return command_; }

 private:
  Status match_ended(Bytes table, const format::Footer& footer);
  Status start(Bytes tail, std::uint64_t object_bytes);
  Status await();
  Status told_by_process(const Status& answer);

  const client::Origin& origin_;
  const client::Connection& agent_;
  const LifeOptions life_;
  const bool tells_;
  std::unique_ptr<BootProcess> boot_;
  std::string command_;
  std::optional<std::uint32_t> chain_;
  std::optional<Descriptor> output_;  // its standard output
  std::vector<KeptChunk> chunks_;     // of the object, as they came
  bool ended_ = false;                // the program had, when it was saved
  bool refused_ = false;
  std::uint64_t left_ = 0;  // bytes of the object that were not placed yet
  bool copies_ = false;     // the boot program is busy with the last chunk
};

}  // namespace backstay::image
