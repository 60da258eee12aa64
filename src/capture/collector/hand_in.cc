#include "capture/collector/hand_in.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/failpoint.h"

namespace backstay::files {

namespace {

// Stays in the processor's cache between the two copies.
constexpr std::size_t piece_bytes = 256 << 10;

format::FileTime time_of(const struct timespec& time) {
  return {time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)};
}

// Without its holes.
std::uint64_t bytes_in(int memory) {
  struct stat stat = {};
  return ::fstat(memory, &stat) == 0 ? static_cast<std::uint64_t>(stat.st_blocks) * 512 : 0;
}

// The next data from `at` on; none: `begin` is the file's size.
Result<format::Extent> next_data(int memory, std::uint64_t at, std::uint64_t size) {
  const off_t begin = ::lseek(memory, static_cast<off_t>(at), SEEK_DATA);
  if (begin < 0 && errno == ENXIO) return format::Extent{size, 0, 0};
  if (begin < 0) return errno_error("read a captured file", errno);
  const off_t end = ::lseek(memory, begin, SEEK_HOLE);
  if (end < 0) return errno_error("read a captured file", errno);
  const auto from = std::min(static_cast<std::uint64_t>(begin), size);
  return format::Extent{from, std::min(static_cast<std::uint64_t>(end), size) - from, 0};
}

Status copy(client::Writer& writer, int memory, const format::Extent& extent,
            const std::function<bool()>& go_on) {
  thread_local std::vector<std::byte> piece(piece_bytes);
  for (std::uint64_t done = 0; done < extent.bytes;) {
    if (!go_on()) return Error(Code::again, "the program has gone away");
    const std::size_t wanted = std::min<std::uint64_t>(piece.size(), extent.bytes - done);
    const ssize_t got =
        ::pread(memory, piece.data(), wanted, static_cast<off_t>(extent.file_offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("read a captured file", errno);
    if (got == 0) return Error(Code::io, "a captured file became shorter");
    BACKSTAY_TRY(writer.append(piece.data(), static_cast<std::size_t>(got)));
    done += static_cast<std::uint64_t>(got);
  }
  return {};
}

Result<format::CapturedFile> fill(client::Writer& writer, const PendingFile& file,
                                  const std::function<bool()>& go_on) {
  const int memory = file.memory.get();
  struct stat stat = {};
  if (::fstat(memory, &stat) != 0) return errno_error("look at a captured file", errno);
  format::CapturedFile record{.path = file.path,
                              .mode = file.mode,
                              .bytes = static_cast<std::uint64_t>(stat.st_size),
                              .placed_ns = file.placed_ns,
                              .modified = time_of(stat.st_mtim),
                              .accessed = time_of(stat.st_atim),
                              .extents = {}};
  for (std::uint64_t at = 0; at < record.bytes;) {
    BACKSTAY_ASSIGN(format::Extent extent, next_data(memory, at, record.bytes));
    at = extent.file_offset + extent.bytes;
    if (extent.bytes == 0) break;
    extent.object_offset = writer.payload_bytes();
    BACKSTAY_TRY(copy(writer, memory, extent, go_on));
    record.extents.push_back(extent);
  }
  return record;
}

}  // namespace

Result<VersionNumber> hand_in(client::Writer& writer, const PendingFile& file,
                              const std::function<Status(VersionNumber)>& begun,
                              const std::function<bool()>& go_on) {
  BACKSTAY_TRY(writer.begin(bytes_in(file.memory.get())));
  const Status ready = begun(writer.begun());
  failpoint("collector.begun");
  auto record = ready.ok() ? fill(writer, file, go_on) : ready.error();
  if (!record.ok()) {
    (void)writer.abandon();
    return record.error();
  }
  failpoint("collector.filled");
  auto version = writer.end({std::move(*record)});
  if (!version.ok()) (void)writer.abandon();
  failpoint("collector.ended");
  return version;
}

}  // namespace backstay::files
