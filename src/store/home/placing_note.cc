#include "store/home/placing_note.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/log.h"

namespace backstay::store {

namespace {

constexpr std::uint64_t bytes_max = std::uint64_t{64} << 20;
constexpr std::uint64_t rewrite_at_least = std::uint64_t{256} << 10;
constexpr const char* made_beside = "made";
constexpr const char* added = "add";
constexpr const char* taken_back = "not";
constexpr const char* marked_all = "mark";  // of the version
enum Field : std::size_t { what, run, version, placed, path, to, sum, fields_of_line };

Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string in_hex(std::uint64_t number) { return fmt::format("{:x}", number); }

std::uint64_t number_of(std::string_view text) {
  std::uint64_t number = 0;
  (void)std::from_chars(text.begin(), text.end(), number, 16);
  return number;
}

const char* done_at(const PlacingNote::Place& place) {
  return place.made_only ? made_beside : added;
}

// A field ends in a zero byte: no path has one.
std::string line_of(const char* done, const PlacingNote::File& file,
                    const PlacingNote::Place& place) {
  std::string line;
  const auto add = [&](const std::string& field) { line.append(field).push_back('\0'); };
  add(done);
  add(in_hex(file.run));
  add(in_hex(file.version));
  add(in_hex(place.placed_ns));
  add(file.path);
  add(place.to);
  add(in_hex(checksum(bytes_of(line))));
  return line;
}

// What does not end in a zero byte was being written: it is no field.
std::vector<std::string_view> fields_of(std::string_view text) {
  std::vector<std::string_view> fields;
  for (std::size_t end = text.find('\0'); end != text.npos; end = text.find('\0')) {
    fields.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return fields;
}

bool is_whole(const std::string_view* line) {
  const auto bytes = static_cast<std::size_t>(line[sum].data() - line[what].data());
  return number_of(line[sum]) == checksum(bytes_of({line[what].data(), bytes}));
}

}  // namespace

void PlacingNote::begin() {
  if (std::exchange(began_, true) || path_.empty() || boot_.empty()) return;
  Status written = read();
  if (written.ok()) written = rewrite();
  if (!written.ok()) {
    spdlog::debug("files that come home are not noted file={} why=\"{}\"", path_,
                  written.error().to_string());
  }
}

Status PlacingNote::read() {
  const auto read = io::read_file(files_, path_, bytes_max);
  if (!read.ok()) return io::gone_is_fine(read.error());
  const auto fields =
      fields_of(std::string_view(reinterpret_cast<const char*>(read->data()), read->size()));
  if (fields.empty() || fields.front() != boot_) return {};
  for (std::size_t at = 1; at + fields_of_line <= fields.size(); at += fields_of_line) {
    const std::string_view* line = &fields[at];
    // A damaged line may have taken others back. No line counts then: files are rather brought
    // again.
    if (!is_whole(line)) {
      noted_.clear();
      break;
    }
    const File file{number_of(line[run]), number_of(line[version]), std::string(line[path])};
    noted_.erase(file);
    if (line[what] == marked_all) forget(file.version);
    const bool made_only = line[what] == made_beside;
    if (!made_only && line[what] != added) continue;
    noted_[file] = {std::string(line[to]), number_of(line[placed]), made_only};
  }
  return {};
}

Status PlacingNote::rewrite() {
  const std::string temporary = path_ + ".tmp";
  std::string text = boot_ + '\0';
  for (const auto& [file, place] : noted_) text += line_of(done_at(place), file, place);
  file_.reset();
  BACKSTAY_ASSIGN(auto made, files_.open(temporary, io::Open::create));
  BACKSTAY_TRY(made->write_at(0, bytes_of(text)));
  BACKSTAY_TRY(files_.rename(temporary, path_));
  file_ = std::move(made);
  bytes_ = text.size();
  rewrite_at_ = std::max(2 * bytes_, rewrite_at_least);
  return {};
}

const PlacingNote::Place* PlacingNote::find(const File& file) {
  begin();
  const auto found = noted_.find(file);
  return found == noted_.end() ? nullptr : &found->second;
}

Status PlacingNote::append(const char* done, const File& file, const Place& place) {
  const std::string line = line_of(done, file, place);
  const Status written = file_->write_at(bytes_, bytes_of(line));
  if (!written.ok()) file_.reset();  // nothing behind half a line would be read
  bytes_ += line.size();
  return written;
}

void PlacingNote::made(const File& file, const Place& place) {
  note(file, {place.to, place.placed_ns, true});
}

void PlacingNote::add(const File& file, const Place& place) {
  note(file, {place.to, place.placed_ns, false});
}

void PlacingNote::note(const File& file, const Place& place) {
  begin();
  noted_[file] = place;
  if (file_ != nullptr) (void)append(done_at(place), file, place);
}

Status PlacingNote::take_back(const std::string& to) {
  for (auto at = noted_.begin(); at != noted_.end();) {
    const auto next = std::next(at);
    if (at->second.to == to) BACKSTAY_TRY(take_back(File(at->first)));
    at = next;
  }
  return {};
}

void PlacingNote::take_back(VersionNumber version) {
  for (auto at = noted_.begin(); at != noted_.end();) {
    const auto next = std::next(at);
    if (at->first.version == version) (void)take_back(File(at->first));
    at = next;
  }
}

// Without a note nothing is noted.
Status PlacingNote::take_back(const File& file) {
  const bool written = file_ != nullptr && append(taken_back, file, {}).ok();
  if (!written && !path_.empty()) BACKSTAY_TRY(io::gone_is_fine(files_.remove(path_)));
  noted_.erase(file);
  return {};
}

void PlacingNote::marked(VersionNumber version) {
  if (forget(version) == 0 || path_.empty() || boot_.empty()) return;
  if (file_ != nullptr) (void)append(marked_all, {0, version, ""}, {});
  // Where a line could not be written there may be room by now.
  if (file_ == nullptr || bytes_ >= rewrite_at_) (void)rewrite();
}

std::size_t PlacingNote::forget(VersionNumber version) {
  return std::erase_if(noted_, [&](const auto& one) { return one.first.version == version; });
}

}  // namespace backstay::store
