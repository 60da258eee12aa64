// The codes that backstay_streams.h lists are those that its functions may return, and no other.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "backstay/backstay_streams.h"
#include "client/listed_codes.h"

namespace backstay::client::test {
namespace {

using Codes = std::set<int>;

std::string content(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::map<std::string, int> numbers() {
  const std::string header = content(BACKSTAY_HEADERS "/backstay.h");
  std::map<std::string, int> all;
  const std::regex one("BACKSTAY_(E[A-Z]+) = (\\d+)");
  for (std::sregex_iterator at(header.begin(), header.end(), one), end; at != end; ++at)
    all[(*at)[1]] = std::stoi((*at)[2]);
  return all;
}

std::map<std::string, Codes> listed() {
  const std::string header = content(BACKSTAY_HEADERS "/backstay_streams.h");
  const auto known = numbers();
  std::map<std::string, Codes> all;
  const std::regex function("\\nBACKSTAY_API int (backstay_\\w+)\\(");
  for (std::sregex_iterator at(header.begin(), header.end(), function), end; at != end; ++at) {
    const auto begin = header.rfind("/*", static_cast<std::size_t>(at->position()));
    const std::string comment =
        header.substr(begin, static_cast<std::size_t>(at->position()) - begin);
    const std::string errors = comment.substr(comment.find("Errors:"));
    Codes& codes = all[(*at)[1]];
    const std::regex code("\\bE[A-Z]+\\b");
    for (std::sregex_iterator is(errors.begin(), errors.end(), code); is != end; ++is) {
      const auto number = known.find(is->str());
      if (number != known.end()) codes.insert(number->second);
    }
    std::smatch other;
    if (!std::regex_search(errors, other, std::regex("as (backstay_\\w+)"))) continue;
    const Codes more = all.at(other[1]);
    codes.insert(more.begin(), more.end());
  }
  return all;
}

TEST(StreamCodes, TheHeaderListsWhatEachFunctionMayReturn) {
  const std::map<std::string, Call> calls{
      {"backstay_stream_open", Call::stream_open},   {"backstay_stream_write", Call::stream_write},
      {"backstay_stream_close", Call::stream_close}, {"backstay_stream_count", Call::stream_count},
      {"backstay_stream_at", Call::stream_at},       {"backstay_stream_bytes", Call::stream_bytes},
      {"backstay_stream_read", Call::stream_read}};
  const auto all = listed();
  ASSERT_EQ(all.size(), calls.size());
  for (const auto& [function, codes] : all) {
    for (int code = 1; code < BACKSTAY_EINTERNAL; ++code) {
      EXPECT_EQ(may_return(calls.at(function), static_cast<Code>(code)), codes.contains(code))
          << function << " and " << code;
    }
  }
}

TEST(StreamCodes, WithoutASessionAllSayState) {
  backstay_stream stream = 0;
  uint64_t number = 0;
  char name[8];
  EXPECT_EQ(backstay_stream_open("s", &stream), BACKSTAY_ESTATE);
  EXPECT_EQ(backstay_stream_write(1, "x", 1), BACKSTAY_ESTATE);
  EXPECT_EQ(backstay_stream_close(1), BACKSTAY_ESTATE);
  EXPECT_EQ(backstay_stream_count(1, &number), BACKSTAY_ESTATE);
  EXPECT_EQ(backstay_stream_at(1, 0, name, sizeof name, &number), BACKSTAY_ESTATE);
  EXPECT_EQ(backstay_stream_bytes(1, "s", &number), BACKSTAY_ESTATE);
  EXPECT_EQ(backstay_stream_read(1, "s", 0, name, 1), BACKSTAY_ESTATE);
}

}  // namespace
}  // namespace backstay::client::test
