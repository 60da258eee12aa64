#include "bin/commands/measure.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "base/aligned_memory.h"
#include "base/clock.h"
#include "base/fd.h"
#include "io/posix.h"
#include "io/ring.h"

namespace backstay::bin {
namespace {

constexpr int rounds = 5;

double seconds_from(std::uint64_t start_ns) {
  return static_cast<double>(system_clock().monotonic_ns() - start_ns) * 1e-9;
}

// Shared by the measuring processes.
struct Meeting {
  pthread_barrier_t barrier;
  double seconds[rounds][256];
};

constexpr unsigned processes_max = 256;

[[noreturn]] void copy_in_child(Meeting& meeting, unsigned process, std::uint64_t bytes) {
  AlignedMemory from(bytes), to(bytes);
  std::memset(from.span().data(), 1, bytes);
  std::memset(to.span().data(), 2, bytes);
  for (auto& round : meeting.seconds) {
    ::pthread_barrier_wait(&meeting.barrier);
    const std::uint64_t start = system_clock().monotonic_ns();
    std::memcpy(to.span().data(), from.span().data(), bytes);
    round[process] = seconds_from(start);
  }
  ::_exit(static_cast<int>(to.span()[bytes / 2]) == 1 ? 0 : 1);
}

}  // namespace

Status move_all(io::Ring& ring, io::File& file, std::span<std::byte> memory, std::size_t piece,
                std::uint64_t bytes, bool writing, Progress& progress) {
  Status failed;
  std::vector<std::uint64_t> free(memory.size() / piece);
  for (std::size_t i = 0; i < free.size(); ++i) free[i] = i;
  for (std::uint64_t at = 0; at < bytes || ring.in_flight() > 0;) {
    if (!failed.ok()) at = bytes;  // requests in flight still use the file and the memory
    for (; at < bytes && !free.empty() && ring.in_flight() < ring.depth(); at += piece) {
      const std::uint64_t slot = free.back();
      free.pop_back();
      const auto part = memory.subspan(slot * piece, piece);
      if (writing)
        ring.write(file, at, part, slot);
      else
        ring.read(file, at, part, slot);
    }
    for (const io::Completion& done : ring.reap(true)) {
      free.push_back(done.tag);
      progress.add(piece);
      if (failed.ok()) failed = done.status;
    }
  }
  return failed;
}

namespace {

// The name of a file. It is removed before the file grows, so that a tool that is killed leaves
// nothing.
class ProbeFile {
 public:
  ProbeFile(io::FileSystem& fs, const std::string& dir)
      : fs_(fs), path_(dir + "/.probe-" + std::to_string(::getpid())) {}
  ~ProbeFile() { (void)fs_.remove(path_).ok(); }
  ProbeFile(const ProbeFile&) = delete;
  ProbeFile& operator=(const ProbeFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  io::FileSystem& fs_;
  const std::string path_;
};

Result<std::array<Fd, 2>> connected_pair() {
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  Fd one(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(listener.get(), generic, size) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), generic, &size) != 0 ||
      ::connect(one.get(), generic, size) != 0)
    return errno_error("connect over the loopback network", errno);
  Fd other(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!other.valid()) return errno_error("connect over the loopback network", errno);
  return std::array<Fd, 2>{std::move(one), std::move(other)};
}

}  // namespace

Result<MemorySpeed> measure_memory(unsigned processes, std::uint64_t bytes_each) {
  processes = std::clamp(processes, 1u, processes_max);
  void* shared =
      ::mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return errno_error("map shared memory", errno);
  auto& meeting = *static_cast<Meeting*>(shared);
  pthread_barrierattr_t attributes;
  ::pthread_barrierattr_init(&attributes);
  ::pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_barrier_init(&meeting.barrier, &attributes, processes);
  std::vector<pid_t> children;
  for (unsigned i = 0; i < processes; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) copy_in_child(meeting, i, bytes_each);
    if (pid > 0) children.push_back(pid);
  }
  bool good = children.size() == processes;
  // Too few processes would wait at the barrier without end.
  if (!good)
    for (const pid_t pid : children) ::kill(pid, SIGKILL);
  for (const pid_t pid : children) {
    int status = 0;
    good &= ::waitpid(pid, &status, 0) == pid && status == 0;
  }
  std::array<double, rounds> slowest{};
  for (int round = 0; round < rounds; ++round)
    slowest[static_cast<std::size_t>(round)] =
        *std::max_element(meeting.seconds[round], meeting.seconds[round] + processes);
  ::munmap(shared, sizeof(Meeting));
  if (!good) return Error(Code::io, "not enough memory or processes to measure the memory's speed");
  std::sort(slowest.begin(), slowest.end());
  return MemorySpeed{
      processes, bytes_each,
      static_cast<double>(processes) * static_cast<double>(bytes_each) / slowest[rounds / 2]};
}

Result<DiskSpeed> measure_disk(const Config& config, const std::string& dir, std::uint64_t bytes,
                               Progress& progress) {
  const auto fs = io::make_posix_filesystem({.direct = config.writer.direct});
  const std::size_t piece = std::size_t{config.pool.buffer_mib} << 20;
  bytes = std::max<std::uint64_t>(1, bytes / piece) * piece;
  BACKSTAY_TRY(fs->make_directories(dir));
  AlignedMemory memory(piece * config.writer.depth);
  std::memset(memory.span().data(), 0x5a, memory.span().size());
  io::RingKind kind;
  BACKSTAY_ASSIGN(const auto ring,
                  io::make_ring({config.writer.depth, config.writer.io_uring, {}}, &kind));
  std::unique_ptr<io::File> written;
  std::unique_ptr<io::File> file;
  {
    const ProbeFile place(*fs, dir);
    BACKSTAY_ASSIGN(written, fs->open(place.path(), io::Open::create_direct));
    BACKSTAY_ASSIGN(file, fs->open(place.path(), io::Open::read_direct));
  }
  DiskSpeed speed;
  BACKSTAY_TRY(written->allocate(bytes));
  std::uint64_t start = system_clock().monotonic_ns();
  BACKSTAY_TRY(move_all(*ring, *written, memory.span(), piece, bytes, true, progress));
  BACKSTAY_TRY(written->sync());
  speed.write_bytes_per_s = static_cast<double>(bytes) / seconds_from(start);
  start = system_clock().monotonic_ns();
  BACKSTAY_TRY(move_all(*ring, *file, memory.span(), piece, bytes, false, progress));
  speed.read_bytes_per_s = static_cast<double>(bytes) / seconds_from(start);
  speed.bytes = bytes, speed.direct = file->direct(), speed.io_uring = kind.io_uring,
  speed.why_not = kind.why_not;
  return speed;
}

Result<double> measure_loopback(double seconds) {
  BACKSTAY_ASSIGN(auto ends, connected_pair());
  std::vector<char> out(1 << 20), in(1 << 20);
  const int sending = ends[0].get();
  std::thread sender([&out, sending, seconds] {
    const std::uint64_t start = system_clock().monotonic_ns();
    while (seconds_from(start) < seconds &&
           ::send(sending, out.data(), out.size(), MSG_NOSIGNAL) > 0) {
    }
    ::shutdown(sending, SHUT_WR);
  });
  const std::uint64_t start = system_clock().monotonic_ns();
  double received = 0;
  for (ssize_t got; (got = ::recv(ends[1].get(), in.data(), in.size(), 0)) > 0;)
    received += static_cast<double>(got);
  const double elapsed = seconds_from(start);
  sender.join();
  return received / elapsed;
}

}  // namespace backstay::bin
