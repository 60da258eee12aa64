#include "bin/parts/print.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/clock.h"

namespace backstay::bin {
namespace {

std::string scaled(double value, double step, const std::array<const char*, 6>& units) {
  std::size_t unit = 0;
  for (; value >= step && unit + 1 < units.size(); ++unit) value /= step;
  if (unit == 0) return fmt::format("{:.0f} {}", value, units[0]);
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, units[unit]);
}

// Columns on a terminal: every byte that does not continue a UTF-8 character counts as one.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// Bytes of the UTF-8 character that the text begins with; 0 if it is none, or a control character.
std::size_t visible_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return byte(0) >= 0x20 && byte(0) != 0x7F ? 1 : 0;
  const std::size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : byte(0) >= 0xC2 ? 2 : 0;
  if (length == 0 || byte(0) > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const bool control = byte(0) == 0xC2 && byte(1) < 0xA0;
  return control ? 0 : length;
}

}  // namespace

std::string bytes_text(std::uint64_t bytes) {
  return scaled(static_cast<double>(bytes), 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB"});
}

std::string rate_text(double bytes_per_s) {
  return scaled(std::max(0.0, bytes_per_s), 1000, {"B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"});
}

std::string duration_text(double seconds) {
  if (seconds < 0) seconds = 0;
  if (seconds < 1) return fmt::format("{:.2f} s", seconds);
  if (seconds < 60) return fmt::format("{:.{}f} s", seconds, seconds < 10 ? 1 : 0);
  const auto whole = static_cast<std::uint64_t>(seconds);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
  return fmt::format("{} d {} h", whole / 86400, whole / 3600 % 24);
}

std::string time_text(std::uint64_t wall_ns) {
  if (wall_ns == 0) return "-";
  const auto seconds = static_cast<std::time_t>(wall_ns / 1'000'000'000);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(seconds));
}

double seconds_since(std::uint64_t wall_ns) {
  const std::uint64_t now = system_clock().wall_ns();
  return now > wall_ns ? static_cast<double>(now - wall_ns) * 1e-9 : 0;
}

std::string age_text(std::uint64_t wall_ns) {
  return wall_ns == 0 ? "-" : duration_text(seconds_since(wall_ns)) + " ago";
}

std::string count_text(std::uint64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : one.ends_with("s") ? "es" : "s");
}

std::string printable(std::string_view text, std::string_view kept) {
  std::string out;
  while (!text.empty()) {
    const bool keep = kept.find(text[0]) != std::string_view::npos;
    const std::size_t length = keep ? 1 : visible_character(text);
    if (length > 0)
      out += text.substr(0, length);
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

Table::Table(std::vector<std::string> titles) {
  for (std::string& title : titles) {
    right_.push_back(title.starts_with('>'));
    if (right_.back()) title.erase(0, 1);
  }
  rows_.push_back(std::move(titles));
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(right_.size());
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(right_.size());
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string gap(widths[i] - width_of(row[i]), ' ');
      line += (right_[i] ? gap + row[i] : row[i] + gap) + "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

void print_json(const nlohmann::ordered_json& document) {
  fmt::print("{}\n", document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void to_stderr(const std::string& text) {
  (void)std::fputs(text.c_str(), stderr);
  (void)std::fflush(stderr);
}

void remark(std::string_view text) {
  to_stderr(fmt::format("backstay: {}\n", printable(text, "\n")));
}

}  // namespace backstay::bin
