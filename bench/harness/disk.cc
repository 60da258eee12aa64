#include "bench/harness/disk.h"

#include <fcntl.h>
#include <liburing.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/fd.h"
#include "bench/harness/samples.h"
#include "bench/harness/shared.h"

namespace backstay::bench {

namespace {

constexpr std::size_t piece_bytes = std::size_t{4} << 20;
constexpr unsigned depth = 8;

[[noreturn]] void die_errno(const std::string& what, int error) {
  die(what + ": " + std::strerror(error));
}

Fd open_direct(const std::string& path, int flags) {
  int fd = ::open(path.c_str(), flags | O_DIRECT | O_CLOEXEC, 0600);
  if (fd < 0 && errno == EINVAL) fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd < 0) die_errno("open " + path, errno);
  return Fd(fd);
}

struct Transfer {
  int fd;
  std::byte* memory;
  std::size_t bytes;
  bool writing;

  std::size_t piece_at(std::size_t at) const { return std::min(piece_bytes, bytes - at); }
};

void one_by_one(const Transfer& job) {
  for (std::size_t at = 0; at < job.bytes;) {
    const std::size_t piece = job.piece_at(at);
    const auto offset = static_cast<off_t>(at);
    const ssize_t done = job.writing ? pwrite(job.fd, job.memory + at, piece, offset)
                                     : pread(job.fd, job.memory + at, piece, offset);
    if (done <= 0) die_errno("raw transfer", errno);
    at += static_cast<std::size_t>(done);
  }
}

void submit(io_uring& ring, const Transfer& job, std::size_t at) {
  io_uring_sqe* entry = io_uring_get_sqe(&ring);
  const auto length = static_cast<unsigned>(job.piece_at(at));
  if (job.writing) {
    io_uring_prep_write(entry, job.fd, job.memory + at, length, at);
  } else {
    io_uring_prep_read(entry, job.fd, job.memory + at, length, at);
  }
  io_uring_sqe_set_data64(entry, length);
  io_uring_submit(&ring);
}

void through_ring(const Transfer& job) {
  io_uring ring{};
  if (const int error = io_uring_queue_init(depth, &ring, 0); error < 0) {
    one_by_one(job);  // containers may refuse io_uring
    return;
  }
  std::size_t next = 0;
  unsigned in_flight = 0;
  while (next < job.bytes || in_flight > 0) {
    for (; next < job.bytes && in_flight < depth; ++in_flight, next += job.piece_at(next)) {
      submit(ring, job, next);
    }
    io_uring_cqe* done = nullptr;
    if (io_uring_wait_cqe(&ring, &done) != 0) continue;
    if (done->res < 0) die_errno("raw transfer", -done->res);
    if (static_cast<std::uint64_t>(done->res) != done->user_data) die("raw transfer: short");
    io_uring_cqe_seen(&ring, done);
    --in_flight;
  }
  io_uring_queue_exit(&ring);
}

double run(const Transfer& job, Way way, std::int64_t start_ns) {
  if (way == Way::io_uring) {
    through_ring(job);
  } else {
    one_by_one(job);
  }
  if (job.writing && fdatasync(job.fd) != 0) die_errno("fdatasync", errno);
  return static_cast<double>(now_ns() - start_ns) / 1e9;
}

}  // namespace

double raw_write_s(const std::string& path, std::span<const std::byte> from, Way way) {
  ::unlink(path.c_str());
  const std::int64_t start = now_ns();
  const Fd file = open_direct(path, O_WRONLY | O_CREAT | O_EXCL);
  return run({file.get(), const_cast<std::byte*>(from.data()), from.size(), true}, way, start);
}

double raw_read_s(const std::string& path, std::span<std::byte> to, Way way) {
  const std::int64_t start = now_ns();
  const Fd file = open_direct(path, O_RDONLY);
  return run({file.get(), to.data(), to.size(), false}, way, start);
}

bool direct_works(const std::string& dir) {
  const std::string path = dir + "/direct-test";
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_DIRECT | O_CLOEXEC, 0600));
  ::unlink(path.c_str());
  return file.valid();
}

void drop_cache(const std::string& dir) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
    if (!entry.is_regular_file()) continue;
    const Fd file(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) continue;
    fdatasync(file.get());
    posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

std::int64_t device_writes(const std::string& dir) {
  struct stat status {};
  if (::stat(dir.c_str(), &status) != 0) return -1;
  std::ifstream table("/proc/diskstats");
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    unsigned major_number = 0;
    unsigned minor_number = 0;
    std::string name;
    std::int64_t reads = 0, reads_merged = 0, sectors_read = 0, read_ms = 0, writes = 0;
    fields >> major_number >> minor_number >> name >> reads >> reads_merged >> sectors_read >>
        read_ms >> writes;
    if (major_number == major(status.st_dev) && minor_number == minor(status.st_dev)) {
      return writes;
    }
  }
  return -1;
}

}  // namespace backstay::bench
