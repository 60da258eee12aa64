// Writer and Reader of a directory tier: a file and a borrowed ring.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tier/ring_shelf.h"
#include "tier/tier.h"

namespace backstay::tier {

// A file that gets its name when it is sealed. Until then it is removed with its writer.
struct Unnamed {
  io::FileSystem& fs;
  std::string temporary;
  std::string path;
};

class FileWriter final : public Writer {
 public:
  FileWriter(std::unique_ptr<io::File> file, BorrowedRing ring,
             std::optional<Unnamed> unnamed = std::nullopt)
      : unnamed_(std::move(unnamed)), file_(std::move(file)), ring_(std::move(ring)) {}
  ~FileWriter() override;
  unsigned depth() const override { return ring_->depth(); }
  unsigned in_flight() const override { return ring_->in_flight(); }
  void write(std::uint64_t offset, Bytes from, std::uint64_t tag) override;
  std::vector<Done> reap(bool wait) override;
  Status seal(std::uint64_t bytes) override;

 private:
  std::optional<Unnamed> unnamed_;
  std::unique_ptr<io::File> file_;  // closed after the ring was emptied
  BorrowedRing ring_;
  Status failed_;  // the error of the first failed write
};

class FileReader final : public Reader {
 public:
  // `closed` is called when the reader is destroyed.
  FileReader(std::unique_ptr<io::File> file, BorrowedRing ring, std::function<void()> closed)
      : closed_(std::move(closed)), file_(std::move(file)), ring_(std::move(ring)) {}
  ~FileReader() override { closed_(); }
  unsigned depth() const override { return ring_->depth(); }
  unsigned in_flight() const override { return ring_->in_flight(); }
  void read(std::uint64_t offset, std::span<std::byte> to, std::uint64_t tag) override;
  std::vector<Done> reap(bool wait) override;

 private:
  std::function<void()> closed_;
  std::unique_ptr<io::File> file_;
  BorrowedRing ring_;
};

}  // namespace backstay::tier
