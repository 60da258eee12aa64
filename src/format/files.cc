#include "format/files.h"

#include "format/layout.h"

namespace backstay::format {

namespace {

constexpr std::string_view files_what = "file table";
constexpr std::uint32_t mode_max = 07777;
constexpr std::uint32_t nanoseconds_max = 999'999'999;

void put_time(ByteWriter& out, const FileTime& time) {
  out.put(time.seconds);
  out.put(time.nanoseconds);
}

FileTime get_time(ByteReader& in) {
  FileTime time;
  time.seconds = in.get<std::int64_t>();
  time.nanoseconds = in.get<std::uint32_t>();
  return time;
}

void put_file(ByteWriter& out, const CapturedFile& file) {
  out.put_text(file.path);
  out.put(file.mode);
  out.put(static_cast<std::uint32_t>(file.extents.size()));
  out.put(file.bytes);
  out.put(file.placed_ns);
  put_time(out, file.modified);
  put_time(out, file.accessed);
  for (const Extent& extent : file.extents) {
    out.put(extent.file_offset);
    out.put(extent.bytes);
    out.put(extent.object_offset);
  }
}

Error wrong_file(const CapturedFile& file, std::string_view why) {
  return layout::damaged(files_what, "'" + file.path + "': " + std::string(why));
}

bool inside(std::uint64_t offset, std::uint64_t bytes, std::uint64_t end) {
  return offset <= end && bytes <= end - offset;
}

Status get_extents(ByteReader& in, std::uint32_t count, std::uint64_t payload_end,
                   CapturedFile& file) {
  if (count > in.left() / extent_bytes) return wrong_file(file, "number of extents");
  file.extents.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    Extent extent;
    extent.file_offset = in.get<std::uint64_t>();
    extent.bytes = in.get<std::uint64_t>();
    extent.object_offset = in.get<std::uint64_t>();
    if (extent.bytes == 0) return wrong_file(file, "an extent without bytes");
    if (!inside(extent.file_offset, extent.bytes, file.bytes)) {
      return wrong_file(file, "an extent behind the end of the file");
    }
    if (!inside(extent.object_offset, extent.bytes, payload_end)) {
      return wrong_file(file, "an extent behind the end of the payload");
    }
    file.extents.push_back(extent);
  }
  return {};
}

Result<CapturedFile> get_file(ByteReader& in, std::uint64_t payload_end) {
  CapturedFile file;
  file.path = in.get_text();
  file.mode = in.get<std::uint32_t>();
  const auto extents = in.get<std::uint32_t>();
  file.bytes = in.get<std::uint64_t>();
  file.placed_ns = in.get<std::uint64_t>();
  file.modified = get_time(in);
  file.accessed = get_time(in);
  if (!in.ok()) return layout::damaged(files_what, "ends inside of a record");
  if (!check_file_path(file.path).ok()) return layout::damaged(files_what, "a path is not valid");
  if (file.mode > mode_max) return wrong_file(file, "permission bits");
  if (file.modified.nanoseconds > nanoseconds_max || file.accessed.nanoseconds > nanoseconds_max) {
    return wrong_file(file, "nanoseconds of a time");
  }
  BACKSTAY_TRY(get_extents(in, extents, payload_end, file));
  return file;
}

bool good_component(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= file_name_max;
}

}  // namespace

Status check_file_path(std::string_view path) {
  if (path.size() > file_path_max) {
    return Error(Code::too_large,
                 "a path of " + std::to_string(path.size()) + " bytes; at most 4095 are allowed");
  }
  if (!path.starts_with('/')) return Error(Code::invalid, "the path is not absolute");
  if (path.find('\0') != std::string_view::npos) {
    return Error(Code::invalid, "the path holds a zero byte");
  }
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at + 1), path.size());
    if (!good_component(path.substr(at + 1, end - at - 1))) {
      return Error(Code::invalid, "a part of the path is empty, '.', '..' or too long");
    }
    at = end;
  }
  return {};
}

Buffer encode_files(std::span<const CapturedFile> files, std::uint64_t table_offset) {
  ByteWriter out;
  for (const CapturedFile& file : files) put_file(out, file);
  return with_footer(std::move(out), table_offset, static_cast<std::uint32_t>(files.size()),
                     ObjectKind::files);
}

Result<std::vector<CapturedFile>> decode_files(Bytes table, const Footer& footer) {
  if (table.size() != footer.table_bytes || checksum(table) != footer.table_checksum) {
    return layout::damaged(files_what, "checksum does not match");
  }
  std::vector<CapturedFile> files;
  ByteReader in(table);
  // Grows with what is really there: `footer` may come from anywhere.
  for (std::uint32_t i = 0; i < footer.records; ++i) {
    BACKSTAY_ASSIGN(CapturedFile file, get_file(in, footer.table_offset));
    if (!files.empty() && files.back().path >= file.path) {
      return wrong_file(file, "is there twice, or out of order");
    }
    files.push_back(std::move(file));
  }
  if (!in.done()) return layout::damaged(files_what, "is longer than its records");
  return files;
}

}  // namespace backstay::format
