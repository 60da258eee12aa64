// Text for people: sizes, times, tables. And JSON for programs.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace backstay::bin {

std::string bytes_text(std::uint64_t bytes);                        // "1.5 GiB"
std::string rate_text(double bytes_per_s);                          // "1.61 GB/s"
std::string duration_text(double seconds);                          // "4 min 10 s"
std::string time_text(std::uint64_t wall_ns);                       // "2026-11-20 22:31:07"
double seconds_since(std::uint64_t wall_ns);                        // 0 for a time in the future
std::string age_text(std::uint64_t wall_ns);                        // "4 min 10 s ago"
std::string count_text(std::uint64_t count, std::string_view one);  // "1 version", "2 versions"

// The text with control characters and bytes that are no UTF-8 as \xNN: names come from programs,
// and a terminal would obey them. Characters in `kept` stay.
std::string printable(std::string_view text, std::string_view kept = "");

// Columns that are as wide as their longest cell; cells become printable(). Not for concurrent use.
class Table {
 public:
  // A title that begins with ">" makes a right-aligned column.
  explicit Table(std::vector<std::string> titles);
  void add(std::vector<std::string> cells);
  std::string text() const;  // with a final newline

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<bool> right_;
};

// Prints the document to stdout, indented, with a final newline.
void print_json(const nlohmann::ordered_json& document);

// Errors are ignored: stderr may have no reader, or no room.
void to_stderr(const std::string& text);

// A remark for the person at the terminal, on stderr: "backstay: ...".
void remark(std::string_view text);

}  // namespace backstay::bin
