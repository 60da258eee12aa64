// The image of a stopped program as the object of a version: the boot program copies its pages
// straight into the pool. The program stands still while one of these lives, until complete().
#pragma once

#include <memory>
#include <string>

#include "capture/companion/boot_process.h"
#include "capture/companion/full_every.h"
#include "client/capture.h"

namespace backstay::image {

class ImageSource final : public client::ObjectSource {
 public:
  struct What {
    std::string notes;     // at most notes_max - 1 bytes, kept in the image
    bool tersely = false;  // an error need not name a child
    FullEvery::Cut cut = {};
    VersionNumber base = 0;  // of the version; the cut may keep chunks of it
  };
  // Stops the program. Errors: busy (the program has a child), unsupported (the program cannot be
  // saved now; says why), rank_lost (it has ended).
  static Result<std::unique_ptr<ImageSource>> begin(BootProcess& boot, client::Connection& agent,
                                                    const What& what);
  ~ImageSource() override;

  std::uint64_t object_bytes() const override { return bytes_; }
  std::uint64_t handed_over() const override { return kept_bytes_; }
  Kept kept() const override { return kept_; }
  Result<std::uint64_t> read_next(std::span<std::byte> to) override;
  void complete() override;

 private:
  ImageSource(BootProcess& boot, const Answer& cut)
      : boot_(boot), bytes_(cut.bytes), kept_bytes_(cut.kept_bytes) {}
  Status ask_kept(VersionNumber base);

  BootProcess& boot_;
  const std::uint64_t bytes_;
  const std::uint64_t kept_bytes_;
  Kept kept_;
  bool stopped_ = true;
};

}  // namespace backstay::image
