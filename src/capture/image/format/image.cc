#include "capture/image/format/image.h"

#include <algorithm>
#include <cstring>

#include "base/checksum.h"

namespace backstay::image {

namespace {

template <typename T>
Bytes bytes_of(const T& record) {
  return std::as_bytes(std::span(&record, 1));
}

Error damaged(std::string_view why) { return Error(Code::corrupt, "image: " + std::string(why)); }

std::uint64_t checksum_of(const Footer& footer) {
  return checksum(bytes_of(footer).first(sizeof footer - sizeof footer.checksum));
}

std::size_t padding(std::size_t bytes) { return (8 - bytes % 8) % 8; }

template <typename T>
void put(ByteWriter& out, Section kind, std::span<const T> records) {
  const SectionHeader header{static_cast<std::uint32_t>(kind), sizeof(T), records.size()};
  out.put_bytes(bytes_of(header));
  out.put_bytes(std::as_bytes(records));
  out.put_zeros(padding(records.size_bytes()));
}

template <typename Container>
bool get(ByteReader& in, Section kind, Container& records) {
  using T = typename Container::value_type;
  SectionHeader header{};
  const Bytes raw = in.bytes(sizeof header);
  if (!in.ok()) return false;
  std::memcpy(&header, raw.data(), sizeof header);
  if (header.kind != static_cast<std::uint32_t>(kind) || header.record_bytes != sizeof(T) ||
      header.count > in.left() / sizeof(T)) {
    return false;
  }
  const Bytes body = in.bytes(header.count * sizeof(T));
  records.resize(header.count);
  if (!body.empty()) std::memcpy(records.data(), body.data(), body.size());
  const Bytes zeros = in.bytes(padding(body.size()));
  return in.ok() &&
         std::all_of(zeros.begin(), zeros.end(), [](auto b) { return b == std::byte{0}; });
}

bool get_all(ByteReader& in, Image& image) {
  std::vector<Identity> identity;
  const bool good =
      get(in, Section::identity, identity) && get(in, Section::areas, image.areas) &&
      get(in, Section::runs, image.runs) && get(in, Section::files, image.files) &&
      get(in, Section::threads, image.threads) && get(in, Section::handlers, image.handlers) &&
      get(in, Section::timers, image.timers) && get(in, Section::descriptors, image.descriptors) &&
      get(in, Section::contents, image.contents) && get(in, Section::texts, image.texts) &&
      in.done();
  if (!good || identity.size() != 1) return false;
  image.identity = identity[0];
  return true;
}

bool is_area(const Area& area, const Image& image) {
  const bool whole = area.start % page_bytes == 0 && area.end % page_bytes == 0 &&
                     area.offset % page_bytes == 0 && area.start < area.end;
  const bool known = area.kind >= 1 && area.kind <= area_kinds && area.protection < 8 &&
                     (area.flags & ~area_flags) == 0;
  const bool of_file = area.kind == static_cast<std::uint32_t>(AreaKind::private_file) ||
                       area.kind == static_cast<std::uint32_t>(AreaKind::shared_file);
  return whole && known && (of_file ? area.file < image.files.size() : area.file == no_index);
}

// The runs of format 1 follow each other in the object, and nothing else is before the table.
Status check_whole(const Image& image, const Footer& footer) {
  std::uint64_t next = 0;
  for (const Run& run : image.runs) {
    if (run.offset != next || run.pages > (footer.table_offset - next) / page_bytes) {
      return damaged("a run of pages is not where the one before ends");
    }
    next += run.pages * page_bytes;
  }
  if (next != footer.table_offset) return damaged("pages that no run names");
  return {};
}

// Those of format 2 share no page.
Status check_kept(const Image& image, const Footer& footer) {
  std::vector<Run> runs = image.runs;
  std::ranges::sort(runs, {}, &Run::offset);
  std::uint64_t end = 0;
  for (const Run& run : runs) {
    if (run.offset % page_bytes != 0 || run.offset < end || run.offset > footer.table_offset ||
        run.pages > (footer.table_offset - run.offset) / page_bytes) {
      return damaged("a run of pages is not before the table, or shares a page with another");
    }
    end = run.offset + run.pages * page_bytes;
  }
  return {};
}

// Runs are in the order of their addresses; each lies in one area.
Status check_memory(const Image& image, const Footer& footer) {
  std::uint64_t end = 0;
  for (const Area& area : image.areas) {
    if (!is_area(area, image) || area.start < end) return damaged("an area of the map");
    end = area.end;
  }
  auto area = image.areas.begin();
  std::uint64_t address = 0;
  for (const Run& run : image.runs) {
    while (area != image.areas.end() && area->end <= run.address) ++area;
    if (run.version != 0) return damaged("pages of another version");
    if (area == image.areas.end() || run.address % page_bytes != 0 || run.pages == 0 ||
        run.address < std::max(area->start, address) ||
        run.pages > (area->end - run.address) / page_bytes) {
      return damaged("a run of pages outside of the map");
    }
    address = run.address + run.pages * page_bytes;
  }
  return footer.format == format_whole ? check_whole(image, footer) : check_kept(image, footer);
}

bool texts_are_there(const Image& image) {
  const auto there = [&](std::uint32_t offset) { return offset < image.texts.size(); };
  const Identity& id = image.identity;
  return there(id.program) && there(id.interpreter) && there(id.cwd) && there(id.kernel) &&
         there(id.host) && (id.notes == 0 || there(id.notes)) &&
         std::all_of(image.files.begin(), image.files.end(),
                     [&](const File& file) {
                       return there(file.path) && file.build_id_bytes <= build_id_max;
                     }) &&
         std::all_of(image.descriptors.begin(), image.descriptors.end(),
                     [&](const Descriptor& one) { return there(one.path); });
}

Status check_rest(const Image& image) {
  if (image.texts.empty() || image.texts.back() != '\0' || !texts_are_there(image)) {
    return damaged("a text is missing");
  }
  if (image.threads.empty()) return damaged("no threads");
  if (image.handlers.size() != signals) return damaged("number of signal handlers");
  for (const Descriptor& one : image.descriptors) {
    if (one.kind < 1 || one.kind > descriptor_kinds || one.contents > image.contents.size() ||
        one.contents_bytes > image.contents.size() - one.contents) {
      return damaged("descriptor " + std::to_string(one.number));
    }
  }
  for (const Timer& timer : image.timers) {
    if (timer.kind < 1 || timer.kind > 4) return damaged("a timer of unknown kind");
  }
  return {};
}

}  // namespace

Buffer encode_tail(const Image& image, std::uint64_t table_offset, std::uint32_t format) {
  ByteWriter out;
  put<Identity>(out, Section::identity, std::span(&image.identity, 1));
  put<Area>(out, Section::areas, image.areas);
  put<Run>(out, Section::runs, image.runs);
  put<File>(out, Section::files, image.files);
  put<Thread>(out, Section::threads, image.threads);
  put<Handler>(out, Section::handlers, image.handlers);
  put<Timer>(out, Section::timers, image.timers);
  put<Descriptor>(out, Section::descriptors, image.descriptors);
  put<std::byte>(out, Section::contents, image.contents);
  put<char>(out, Section::texts, image.texts);
  Footer footer{};
  std::memcpy(footer.magic, image_magic, sizeof footer.magic);
  footer.format = format;
  footer.sections = sections_count;
  footer.table_offset = table_offset;
  footer.table_bytes = out.size();
  footer.table_checksum = checksum(out.view());
  footer.page_bytes = page_bytes;
  footer.checksum = checksum_of(footer);
  out.put_bytes(bytes_of(footer));
  return out.take();
}

Result<Footer> decode_footer(Bytes last, std::uint64_t object_bytes) {
  Footer footer{};
  if (last.size() != sizeof footer || object_bytes < sizeof footer) {
    return damaged("too short to have a footer");
  }
  std::memcpy(&footer, last.data(), sizeof footer);
  if (std::memcmp(footer.magic, image_magic, sizeof footer.magic) != 0) {
    return Error(Code::format, "image: its footer does not begin with BKSTIMG1");
  }
  if (footer.format != format_whole && footer.format != format_kept) {
    return Error(Code::format, "image: has format " + std::to_string(footer.format) +
                                   ", this release reads formats 1 and 2");
  }
  if (footer.checksum != checksum_of(footer))
    return damaged("the footer's checksum does not match");
  const std::uint64_t table_end = object_bytes - sizeof footer;
  if (footer.zeros != 0 || footer.sections != sections_count || footer.page_bytes != page_bytes ||
      footer.table_offset % page_bytes != 0 || footer.table_offset > table_end ||
      footer.table_bytes != table_end - footer.table_offset) {
    return damaged("the table is not between the pages and the footer");
  }
  return footer;
}

Result<Image> decode_table(Bytes table, const Footer& footer) {
  if (table.size() != footer.table_bytes || checksum(table) != footer.table_checksum) {
    return damaged("the table's checksum does not match");
  }
  Image image;
  ByteReader in(table);
  if (!get_all(in, image)) return damaged("the table's sections are not those of an image");
  BACKSTAY_TRY(check_memory(image, footer));
  BACKSTAY_TRY(check_rest(image));
  return image;
}

}  // namespace backstay::image
