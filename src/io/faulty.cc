#include "io/faulty.h"

#include <cerrno>

#include "io/faulty_file.h"

namespace backstay::io {

Fault Faults::next(const std::string& what) {
  const std::lock_guard lock(mutex_);
  ++calls_;
  if (stopped_) return Fault::stop;
  if (plan_.fault == Fault::none || calls_ != plan_.at) return Fault::none;
  chosen_ = what;
  stopped_ = plan_.fault == Fault::stop || plan_.fault == Fault::stop_midway;
  return plan_.fault;
}

std::uint64_t Faults::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

bool Faults::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

std::string Faults::chosen() const {
  const std::lock_guard lock(mutex_);
  return chosen_;
}

Error fault_error(Fault fault, const std::string& what) {
  switch (fault) {
    case Fault::no_space: return errno_error(what, ENOSPC);
    case Fault::permission: return errno_error(what, EACCES);
    case Fault::stop:
    case Fault::stop_midway: return errno_error(what + " (the machine has stopped)", EIO);
    default: return errno_error(what, EIO);
  }
}

std::size_t done_before(Fault fault, std::size_t bytes) {
  const bool half =
      fault == Fault::torn || fault == Fault::stop_midway || fault == Fault::short_transfer;
  if (!half) return 0;
  const std::size_t blocks = bytes / 2 / direct_alignment * direct_alignment;
  return bytes < 2 * direct_alignment && bytes % direct_alignment != 0 ? bytes / 2 : blocks;
}

// Runs `call` unless the next fault makes it fail.
template <typename Call>
static auto counted(Faults& faults, const std::string& what, Call call) -> decltype(call()) {
  const Fault fault = faults.next(what);
  if (fails(fault)) return fault_error(fault, what);
  return call();
}

Status FaultyFile::read_at(std::uint64_t offset, std::span<std::byte> to) {
  const Fault fault = faults_->next("read " + path_);
  const std::size_t part = done_before(fault, to.size());
  if (part > 0) BACKSTAY_TRY(inner_->read_at(offset, to.first(part)));
  if (fails(fault)) return fault_error(fault, "read " + path_);
  BACKSTAY_TRY(inner_->read_at(offset + part, to.subspan(part)));
  if (fault == Fault::flip && !to.empty()) to[to.size() / 2] ^= std::byte{1};
  return {};
}

Status FaultyFile::write_at(std::uint64_t offset, Bytes from) {
  const Fault fault = faults_->next("write " + path_);
  const std::size_t part = done_before(fault, from.size());
  if (part > 0) BACKSTAY_TRY(inner_->write_at(offset, from.first(part)));
  if (fails(fault)) return fault_error(fault, "write " + path_);
  return inner_->write_at(offset + part, from.subspan(part));
}

Status FaultyFile::allocate(std::uint64_t bytes) {
  return counted(*faults_, "reserve " + path_, [&] { return inner_->allocate(bytes); });
}
Status FaultyFile::truncate(std::uint64_t bytes) {
  return counted(*faults_, "truncate " + path_, [&] { return inner_->truncate(bytes); });
}
Status FaultyFile::set_attributes(const Attributes& attributes) {
  return counted(*faults_, "set attributes of " + path_,
                 [&] { return inner_->set_attributes(attributes); });
}
Status FaultyFile::sync() {
  return counted(*faults_, "sync " + path_, [&] { return inner_->sync(); });
}
Result<std::uint64_t> FaultyFile::size() {
  return counted(*faults_, "size of " + path_, [&] { return inner_->size(); });
}

namespace {

class FaultyFileSystem final : public FileSystem {
 public:
  FaultyFileSystem(FileSystem& inner, std::shared_ptr<Faults> faults)
      : inner_(inner), faults_(std::move(faults)) {}

  Result<std::unique_ptr<File>> open(const std::string& path, Open how) override {
    BACKSTAY_ASSIGN(auto file,
                    counted(*faults_, "open " + path, [&] { return inner_.open(path, how); }));
    return std::unique_ptr<File>(std::make_unique<FaultyFile>(std::move(file), path, faults_));
  }
  Status make_directories(const std::string& path) override {
    return counted(*faults_, "make " + path, [&] { return inner_.make_directories(path); });
  }
  Status rename(const std::string& from, const std::string& to) override {
    return counted(*faults_, "rename " + from, [&] { return inner_.rename(from, to); });
  }
  Status remove(const std::string& path) override {
    return counted(*faults_, "remove " + path, [&] { return inner_.remove(path); });
  }
  Result<Facts> look(const std::string& path) override {
    return counted(*faults_, "look at " + path, [&] { return inner_.look(path); });
  }
  Result<std::vector<Entry>> list(const std::string& path) override {
    return counted(*faults_, "list " + path, [&] { return inner_.list(path); });
  }
  Status sync_directory(const std::string& path) override {
    return counted(*faults_, "sync folder " + path, [&] { return inner_.sync_directory(path); });
  }

 private:
  FileSystem& inner_;
  const std::shared_ptr<Faults> faults_;
};

}  // namespace

std::unique_ptr<FileSystem> make_faulty_filesystem(FileSystem& inner,
                                                   std::shared_ptr<Faults> faults) {
  return std::make_unique<FaultyFileSystem>(inner, std::move(faults));
}

}  // namespace backstay::io
