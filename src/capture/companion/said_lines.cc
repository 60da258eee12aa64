#include "capture/companion/said_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "base/fd.h"
#include "base/tell.h"

namespace backstay::image {

namespace {

constexpr std::size_t lines_bytes_max = 64 * 1024;
constexpr std::size_t line_bytes_max = 4096;  // of tell_user()

bool is_ours(std::string_view line) {
  return line.starts_with(line_begin) || line.starts_with(run_line_begin);
}

// Standard output is written at the end of its file. Where each of the two has opened the file to
// append, the other one may have come further since the last write.
bool goes_on_at_end(const Descriptor& output) {
  return output.offset == output.bytes || (output.flags & O_APPEND) != 0;
}

bool is_one_file(const Descriptor& output) {
  struct stat out {};
  struct stat error {};
  if (::fstat(1, &out) != 0 || ::fstat(2, &error) != 0 || !S_ISREG(out.st_mode)) return false;
  return out.st_dev == error.st_dev && out.st_ino == error.st_ino && out.st_dev == output.device &&
         out.st_ino == output.inode &&
         output.kind == static_cast<std::uint32_t>(DescriptorKind::file) && goes_on_at_end(output);
}

// Of bytes as they come, whatever there is between.
class OurLines {
 public:
  explicit OurLines(bool at_line) : is_line_(at_line) {}
  void see(std::string_view bytes) {
    for (std::size_t end = 0; !bytes.empty(); bytes.remove_prefix(end)) {
      const std::size_t newline = bytes.find('\n');
      end = newline == std::string_view::npos ? bytes.size() : newline + 1;
      is_line_ = is_line_ && line_.size() + end <= line_bytes_max;
      if (is_line_) line_ += bytes.substr(0, end);
      if (newline == std::string_view::npos) continue;
      if (is_line_ && is_ours(line_) && lines_.size() < lines_bytes_max) lines_ += line_;
      line_.clear();
      is_line_ = true;
    }
  }
  const std::string& lines() const { return lines_; }

 private:
  bool is_line_;  // what has come is a line so far, and no longer than one of ours
  std::string line_;
  std::string lines_;
};

}  // namespace

bool is_output(const Descriptor& one) {
  constexpr std::uint32_t given = descriptor_is_output | descriptor_is_error | descriptor_is_own;
  if ((one.marks & given) == 0) return one.number == 1;  // no mark tells
  return given_output(one) == 1 && (one.marks & descriptor_is_apart) == 0;
}

std::string said_since(const Descriptor& output) {
  if (!is_one_file(output)) return "";
  const Fd file(::open("/proc/self/fd/1", O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return "";
  std::array<char, 64 * 1024> block;
  auto at = static_cast<off_t>(output.bytes);
  char before = '\n';
  if (at > 0 && ::pread(file.get(), &before, 1, at - 1) != 1) return "";
  OurLines ours(before == '\n');
  for (ssize_t got = 0; (got = ::pread(file.get(), block.data(), block.size(), at)) > 0;
       at += got) {
    ours.see({block.data(), static_cast<std::size_t>(got)});
  }
  return ours.lines();
}

void say_again(const Descriptor& output, const std::string& lines) {
  struct stat now {};
  if (lines.empty() || ::fstat(1, &now) != 0) return;
  if (static_cast<std::uint64_t>(now.st_size) > output.bytes) return;
  std::string_view left = lines;
  for (ssize_t wrote = 0; !left.empty(); left.remove_prefix(static_cast<std::size_t>(wrote))) {
    wrote = ::write(1, left.data(), left.size());
    if (wrote <= 0) return;
  }
}

}  // namespace backstay::image
