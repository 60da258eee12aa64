#include "bin/commands/show_streams.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bin/parts/print.h"

namespace backstay::bin {

namespace {
constexpr std::size_t names_listed_max = 20;  // names in the text; --json has all
}  // namespace

void FoundStreams::add(const std::vector<format::Stream>& of_one_rank) {
  for (const format::Stream& stream : of_one_rank) {
    const auto [sum, fresh] = sums_.try_emplace(stream.name);
    if (fresh) order_.push_back(stream.name);
    ++sum->second.ranks;
    sum->second.bytes += stream.bytes;
    ++streams_;
    bytes_ += stream.bytes;
  }
}

std::string FoundStreams::text() const {
  if (order_.empty()) return "";
  Table table({"STREAM", ">RANKS", ">BYTES"});
  for (const std::string& name : order_) {
    if (&name == order_.data() + names_listed_max) break;
    const Sum& sum = sums_.at(name);
    table.add({name, std::to_string(sum.ranks), bytes_text(sum.bytes)});
  }
  std::string text = "\n" + table.text();
  if (order_.size() > names_listed_max)
    text += fmt::format("and {} more (--json lists all): {} of {} together\n",
                        count_text(order_.size() - names_listed_max, "name"),
                        count_text(streams_, "stream"), bytes_text(bytes_));
  return text;
}

nlohmann::ordered_json FoundStreams::json() const {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const std::string& name : order_) {
    const Sum& sum = sums_.at(name);
    all.push_back({{"name", name}, {"ranks", sum.ranks}, {"bytes", sum.bytes}});
  }
  return all;
}

}  // namespace backstay::bin
