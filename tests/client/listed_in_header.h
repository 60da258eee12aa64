// The codes that the comments of backstay.h list, by function.
#pragma once

#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace backstay::client::test {

using Codes = std::set<int>;
using Listed = std::map<std::string, Codes>;

inline std::vector<std::smatch> matches(const std::string& text, const std::regex& what) {
  return {std::sregex_iterator(text.begin(), text.end(), what), std::sregex_iterator()};
}

inline std::map<std::string, int> numbers(const std::string& header) {
  std::map<std::string, int> all;
  for (const auto& one : matches(header, std::regex("BACKSTAY_(E[A-Z]+) = (\\d+)")))
    all[one[1]] = std::stoi(one[2]);
  return all;
}

inline Codes codes_in(const std::string& text, const Listed& before,
                      const std::map<std::string, int>& numbers) {
  Codes codes;
  for (const auto& one : matches(text, std::regex("\\bE[A-Z]+\\b"))) {
    const auto number = numbers.find(one.str());
    if (number != numbers.end()) codes.insert(number->second);
  }
  for (const auto& other : matches(text, std::regex("as (backstay_\\w+)"))) {
    const Codes& more = before.at(other[1]);
    codes.insert(more.begin(), more.end());
  }
  return codes;
}

inline Listed listed_in_the_header() {
  std::ifstream file(BACKSTAY_HEADER);
  const std::string header((std::istreambuf_iterator<char>(file)), {});
  const auto known = numbers(header);
  Listed listed;
  for (const auto& function :
       matches(header, std::regex("\\nBACKSTAY_API int (backstay_\\w+)\\("))) {
    const auto at = static_cast<std::size_t>(function.position());
    const std::string comment = header.substr(header.rfind("/*", at), at - header.rfind("/*", at));
    const auto errors = comment.find("Errors:");
    if (errors != std::string::npos)
      listed[function[1]] = codes_in(comment.substr(errors), listed, known);
  }
  return listed;
}

}  // namespace backstay::client::test
