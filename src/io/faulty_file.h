// The file of a faulty file system. Private to faulty*.cc.
#pragma once

#include "io/faulty.h"

namespace backstay::io {

// The error of a fault that makes a call fail.
Error fault_error(Fault fault, const std::string& what);

// True where the call, or its rest, is not done.
inline bool fails(Fault fault) {
  return fault == Fault::io || fault == Fault::no_space || fault == Fault::permission ||
         fault == Fault::torn || fault == Fault::stop || fault == Fault::stop_midway;
}

// How many of `bytes` are done before the fault strikes: half, in whole blocks where there are any.
std::size_t done_before(Fault fault, std::size_t bytes);

class FaultyFile final : public File {
 public:
  FaultyFile(std::unique_ptr<File> inner, std::string path, std::shared_ptr<Faults> faults)
      : inner_(std::move(inner)), path_(std::move(path)), faults_(std::move(faults)) {}
  Status read_at(std::uint64_t offset, std::span<std::byte> to) override;
  Status write_at(std::uint64_t offset, Bytes from) override;
  Status allocate(std::uint64_t bytes) override;
  Status truncate(std::uint64_t bytes) override;
  Status set_attributes(const Attributes& attributes) override;
  Status sync() override;
  Result<std::uint64_t> size() override;
  int descriptor() const override { return inner_->descriptor(); }
  bool direct() const override { return inner_->direct(); }

  File& inner() { return *inner_; }
  const std::string& path() const { return path_; }

 private:
  const std::unique_ptr<File> inner_;
  const std::string path_;
  const std::shared_ptr<Faults> faults_;
};

}  // namespace backstay::io
