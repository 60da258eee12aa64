#include "agent/version/blockers.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/shorten.h"
#include "tree/facts.h"

namespace backstay::agent {

namespace {

using Json = nlohmann::json;

constexpr std::size_t blockers_max = 4;
constexpr std::size_t why_bytes_max = 200;
constexpr std::size_t line_bytes_max = 160;
constexpr std::size_t host_bytes_max = 64;

// Control characters would grow to six bytes each, and a broken line is no message.
std::string cut(std::string text, std::size_t bytes_max) {
  for (char& one : text) {
    if (static_cast<unsigned char>(one) < 0x20 || one == 0x7f) one = ' ';
  }
  return shortened(text, bytes_max);
}

std::string text_of(const NodeBlockers& all) {
  Json list = Json::array();
  for (const Blocker& blocker : all.blockers) {
    list.push_back({{"version", blocker.version},
                    {"level", static_cast<int>(blocker.level)},
                    {"code", static_cast<int>(blocker.code)},
                    {"why", blocker.why}});
  }
  const Json value{{"host", all.host}, {"lacks", std::move(list)}};
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Blocker> decode_one(const Json& one) {
  const Error bad(Code::invalid, "malformed reason for a level that is not reached");
  if (!one.is_object()) return bad;
  const auto number = [&one](const char* key) {
    const auto found = one.find(key);
    return found != one.end() && found->is_number_integer() ? found->get<std::int64_t>() : -1;
  };
  const std::int64_t version = number("version");
  const std::int64_t level = number("level");
  const std::int64_t code = number("code");
  const auto why = one.find("why");
  if (version <= 0 || level < static_cast<int>(Level::captured) ||
      level > static_cast<int>(Level::durable) || code <= 0 || code > 1000 || why == one.end() ||
      !why->is_string()) {
    return bad;
  }
  return Blocker{static_cast<VersionNumber>(version), static_cast<Level>(level),
                 static_cast<Code>(code), cut(why->get<std::string>(), why_bytes_max)};
}

}  // namespace

std::vector<Blocker> newest_of(std::vector<Blocker> blockers) {
  std::ranges::sort(blockers, [](const Blocker& a, const Blocker& b) {
    return std::tuple(b.version, a.level) < std::tuple(a.version, b.level);
  });
  if (blockers.size() > blockers_max) blockers.resize(blockers_max);
  for (Blocker& blocker : blockers) blocker.why = cut(std::move(blocker.why), why_bytes_max);
  return blockers;
}

std::string encode(NodeBlockers all) {
  all.host = cut(std::move(all.host), host_bytes_max);
  all.blockers = newest_of(std::move(all.blockers));
  std::string value = text_of(all);
  while (value.size() > tree::Facts::value_bytes_max && !all.blockers.empty()) {
    all.blockers.pop_back();
    value = text_of(all);
  }
  return value;
}

Result<NodeBlockers> decode_blockers(const std::string& value) {
  const Json json = Json::parse(value, nullptr, false);
  if (!json.is_object() || !json.contains("host") || !json["host"].is_string() ||
      !json.contains("lacks") || !json["lacks"].is_array()) {
    return Error(Code::invalid, "this is no list of lacks");
  }
  NodeBlockers all;
  all.host = cut(json["host"].get<std::string>(), host_bytes_max);
  for (const Json& one : json["lacks"]) {
    BACKSTAY_ASSIGN(Blocker blocker, decode_one(one));
    all.blockers.push_back(std::move(blocker));
  }
  return all;
}

std::string line_of(const Blocker& blocker) {
  return cut(
      fmt::format("version {} not {}: {}", blocker.version, level_name(blocker.level), blocker.why),
      line_bytes_max);
}

}  // namespace backstay::agent
