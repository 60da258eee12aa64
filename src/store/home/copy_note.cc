#include "store/home/copy_note.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "format/names.h"

namespace backstay::store {

namespace {

constexpr std::string_view note_begins = "backstay copy 1\nhost ";
constexpr std::uint64_t note_bytes_max = 1 << 26;

std::string note_name(const std::string& job, VersionNumber version) {
  return format::version_folder(job, version) + "/node-0000000.copy";
}

// Takes a number and the character behind it.
std::optional<std::uint64_t> take_number(std::string_view& text, char behind) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size() || *end != behind)
    return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return number;
}

bool take_folder(std::string_view& text, CopyNote& note) {
  const auto inode = take_number(text, ' ');
  const auto born_ns = inode ? take_number(text, ' ') : std::nullopt;
  const auto length = born_ns ? take_number(text, '\n') : std::nullopt;
  if (!length || *length >= text.size() || text[*length] != '\n') return false;
  note.folders[std::string(text.substr(0, *length))] = {.inode = *inode, .born_ns = *born_ns};
  text.remove_prefix(*length + 1);
  return true;
}

}  // namespace

Result<CopyNote> decode_note(Bytes bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Error wrong(Code::format, "the note of a copy is damaged, or of a newer format");
  if (!text.starts_with(note_begins)) return wrong;
  text.remove_prefix(note_begins.size());
  const auto end = text.find('\n');
  if (end == std::string_view::npos) return wrong;
  CopyNote note{std::string(text.substr(0, end)), {}};
  text.remove_prefix(end + 1);
  while (!text.empty())
    if (!take_folder(text, note)) return wrong;
  return note;
}

Buffer encode(const CopyNote& note) {
  std::string text = fmt::format("{}{}\n", note_begins, note.host);
  for (const auto& [path, facts] : note.folders)
    text += fmt::format("{} {} {}\n{}\n", facts.inode, facts.born_ns, path.size(), path);
  const Bytes bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Result<std::optional<CopyNote>> read_note(tier::Tier& tier, const std::string& job,
                                          VersionNumber version) {
  const auto bytes = tier.get(note_name(job, version), note_bytes_max);
  if (!bytes.ok() && bytes.error().code() == Code::not_found) return std::optional<CopyNote>();
  if (!bytes.ok()) return bytes.error();
  BACKSTAY_ASSIGN(CopyNote note, decode_note(*bytes));
  return std::optional(std::move(note));
}

Status write_note(tier::Tier& tier, const std::string& job, VersionNumber version,
                  const CopyNote& note) {
  return tier.put(note_name(job, version), encode(note));
}

}  // namespace backstay::store
