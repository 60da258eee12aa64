#include "format/home_mark.h"

#include <cstddef>

#include "base/check.h"
#include "format/files.h"
#include "format/layout.h"

namespace backstay::format {

namespace {

constexpr layout::Magic home_magic = layout::magic("BKSTHOM1");
constexpr std::string_view home_what = "home mark";
constexpr std::size_t sum_bytes = sizeof(std::uint64_t);
constexpr std::size_t file_bytes_min = 1 + 2 + 2 + 2;

struct HomeHeader {
  layout::Magic magic;
  std::uint32_t format;
  std::uint32_t files;
  std::uint64_t version;
  std::uint64_t run;
  std::uint32_t node;
  std::uint32_t zero;
  layout::JobField job;
};
static_assert(sizeof(HomeHeader) == home_mark_header_bytes && offsetof(HomeHeader, job) == 40);

Result<FileNotHome> get_not_home(ByteReader& in) {
  FileNotHome file;
  const auto how = in.get<std::uint8_t>();
  file.path = in.get_text();
  file.why = in.get_text();
  file.how = static_cast<NotHome>(how);
  if (!in.ok()) return layout::damaged(home_what, "ends inside of a file");
  if (how != static_cast<std::uint8_t>(NotHome::waits) &&
      how != static_cast<std::uint8_t>(NotHome::kept)) {
    return layout::damaged(home_what, "a file that neither waits nor is kept");
  }
  if (!check_file_path(file.path).ok()) return layout::damaged(home_what, "a path is not valid");
  if (file.why.size() > home_mark_why_max)
    return layout::damaged(home_what, "a reason is too long");
  return file;
}

Result<HomeHeader> home_header_of(Bytes bytes) {
  if (bytes.size() < sizeof(HomeHeader) + sum_bytes)
    return layout::damaged(home_what, "is too short");
  const auto header = layout::read<HomeHeader>(bytes);
  if (header.magic != home_magic) {
    return Error(Code::format, "home mark: does not begin with BKSTHOM1");
  }
  if (header.format != format_number) return layout::other_format(home_what, header.format);
  const Bytes covered = bytes.first(bytes.size() - sum_bytes);
  if (layout::read<std::uint64_t>(bytes, covered.size()) != checksum(covered)) {
    return layout::damaged(home_what, "checksum does not match");
  }
  if (header.version == 0 || header.zero != 0) {
    return layout::damaged(home_what, "its version is 0, or bytes that must be zero are not");
  }
  return header;
}

}  // namespace

Buffer encode(const HomeMark& mark) {
  BACKSTAY_CHECK(mark.files.size() <= files_max);
  ByteWriter out;
  out.put_bytes(layout::bytes_of(
      HomeHeader{home_magic, format_number, static_cast<std::uint32_t>(mark.files.size()),
                 mark.version, mark.run, mark.node, 0, layout::job_field(mark.job)}));
  for (const FileNotHome& file : mark.files) {
    out.put(static_cast<std::uint8_t>(file.how));
    out.put_text(file.path);
    out.put_text(std::string_view(file.why).substr(0, home_mark_why_max));
  }
  out.put(checksum(out.view()));
  return out.take();
}

Result<HomeMark> decode_home_mark(Bytes bytes) {
  BACKSTAY_ASSIGN(const HomeHeader header, home_header_of(bytes));
  HomeMark mark;
  BACKSTAY_ASSIGN(mark.job, layout::job_of(header.job, home_what));
  mark.node = header.node;
  mark.version = header.version;
  mark.run = header.run;
  ByteReader in(bytes.first(bytes.size() - sum_bytes).subspan(sizeof(HomeHeader)));
  if (header.files > in.left() / file_bytes_min) {
    return layout::damaged(home_what, "number of files");
  }
  mark.files.reserve(header.files);
  for (std::uint32_t i = 0; i < header.files; ++i) {
    BACKSTAY_ASSIGN(FileNotHome file, get_not_home(in));
    if (i > 0 && mark.files.back().path >= file.path) {
      return layout::damaged(home_what, "a path is there twice, or out of order");
    }
    mark.files.push_back(std::move(file));
  }
  if (!in.done()) return layout::damaged(home_what, "is longer than its files");
  return mark;
}

}  // namespace backstay::format
