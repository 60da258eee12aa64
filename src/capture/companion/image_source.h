// The image of a stopped program as the object of a version: the boot program copies its pages
// straight into the pool. The program stands still while one of these lives, until complete().
#pragma once

#include <memory>
#include <string>

#include "capture/companion/boot_process.h"
#include "client/capture.h"

namespace backstay::image {

class ImageSource final : public client::ObjectSource {
 public:
  // Stops the program. `notes`: a text of at most notes_max - 1 bytes, kept in the image.
  // `tersely`: an error need not name a child. Errors: busy (the program has a child), unsupported
  // (the program cannot be saved now; says why), rank_lost (it has ended).
  static Result<std::unique_ptr<client::ObjectSource>> begin(BootProcess& boot,
                                                             client::Connection& agent,
                                                             const std::string& notes,
                                                             bool tersely);
  ~ImageSource() override;

  std::uint64_t object_bytes() const override { return bytes_; }
  Result<std::uint64_t> read_next(std::span<std::byte> to) override;
  void complete() override;

 private:
  ImageSource(BootProcess& boot, std::uint64_t bytes) : boot_(boot), bytes_(bytes) {}

  BootProcess& boot_;
  const std::uint64_t bytes_;
  bool stopped_ = true;
};

}  // namespace backstay::image
