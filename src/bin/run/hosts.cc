#include "bin/run/hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

namespace backstay::bin {
namespace {

constexpr unsigned slots_max = 1'000'000;

bool number(std::string_view text, unsigned& into) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), into);
  return parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size() && into > 0 &&
         into <= slots_max;
}

// The name is an argument of a remote shell: it must not look like an option or a command.
bool is_name(std::string_view name) {
  return !name.empty() && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) ||
                  std::string_view("._-@:").find(static_cast<char>(c)) != std::string_view::npos;
         });
}

// "name" or "name:2"; an address of IPv6 has several colons and no number behind them.
Result<Host> parse_name(std::string_view word, const std::string& where) {
  Host host;
  const auto colon = word.find(':');
  if (colon != std::string_view::npos && word.find(':', colon + 1) == std::string_view::npos) {
    if (!number(word.substr(colon + 1), host.slots))
      return Error(Code::invalid, fmt::format("{}: \"{}\" is no number of slots in \"{}\"", where,
                                              word.substr(colon + 1), word));
    word = word.substr(0, colon);
  }
  if (!is_name(word))
    return Error(Code::invalid, fmt::format("{}: \"{}\" is no name of a host", where, word));
  host.name = word;
  return host;
}

// Each time that a host is named counts; `counts`: so does the first time without a number.
void add(std::vector<Host>& hosts, Host host, bool counts) {
  const auto same = std::find_if(hosts.begin(), hosts.end(),
                                 [&](const Host& one) { return one.name == host.name; });
  if (same == hosts.end()) {
    if (counts && host.slots == 0) host.slots = 1;
    hosts.push_back(std::move(host));
  } else {
    same->slots = std::max(same->slots, 1u) + std::max(host.slots, 1u);
  }
}

// Open MPI takes "slots = 2" for "slots=2".
std::string without_blanks_at_equals(const std::string& line) {
  std::string text;
  for (const char c : line) {
    if (c == '=') text.resize(text.find_last_not_of(" \t") + 1);
    const bool blank = c == ' ' || c == '\t';
    if (!blank || (!text.empty() && text.back() != '=')) text += c;
  }
  return text;
}

Result<Host> parse_line(const std::string& line, const std::string& where) {
  std::istringstream words(without_blanks_at_equals(line));
  std::string word;
  words >> word;
  BACKSTAY_ASSIGN(Host host, parse_name(word, where));
  while (words >> word) {
    if (word.starts_with("slots=")) {
      if (!number(std::string_view(word).substr(6), host.slots))
        return Error(Code::invalid,
                     fmt::format("{}: \"{}\" gives no number of slots", where, word));
    } else if (word.find('=') == std::string::npos) {
      // A launcher would start nothing there, without a message.
      return Error(Code::invalid,
                   fmt::format("{}: \"{}\" follows a host; write one host a line", where, word));
    } else {
      host.more += (host.more.empty() ? "" : " ") + word;
    }
  }
  return host;
}

}  // namespace

Result<std::vector<Host>> parse_host_file(std::string_view text, const std::string& file) {
  std::vector<Host> hosts;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int count = 1; std::getline(lines, line); ++count) {
    line.resize(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    BACKSTAY_ASSIGN(Host host, parse_line(line, fmt::format("{}:{}", file, count)));
    add(hosts, std::move(host), false);
  }
  if (hosts.empty()) return Error(Code::invalid, file + " names no host");
  return hosts;
}

Result<std::vector<Host>> parse_host_list(std::string_view text) {
  std::vector<Host> hosts;
  const std::string where = "the list of hosts";
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    if (comma > 0) {
      BACKSTAY_ASSIGN(Host host, parse_name(text.substr(0, comma), where));
      add(hosts, std::move(host), true);
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  if (hosts.empty()) return Error(Code::invalid, where + " is empty");
  return hosts;
}

std::string host_file_text(const std::vector<Host>& hosts, LauncherKind kind) {
  std::string text;
  for (const Host& host : hosts) {
    text += host.name;
    if (host.slots > 0)
      text += fmt::format("{}{}", kind == LauncherKind::mpich ? ":" : " slots=", host.slots);
    if (!host.more.empty()) text += " " + host.more;
    text += "\n";
  }
  return text;
}

std::string names_text(const std::vector<Host>& hosts, std::string_view between) {
  std::string text;
  for (const Host& host : hosts) text += (text.empty() ? "" : std::string(between)) + host.name;
  return text;
}

unsigned slots_of(const std::vector<Host>& hosts) {
  unsigned sum = 0;
  for (const Host& host : hosts) {
    if (host.slots == 0) return 0;
    sum += host.slots;
  }
  return sum;
}

}  // namespace backstay::bin
