// What the tests of a session share: a session in a world, codes, and the content of files.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "client/session.h"
#include "world.h"

namespace backstay::client::test {

using Data = std::vector<unsigned char>;

constexpr std::uint32_t buffer_bytes = 256;

inline std::unique_ptr<Session> session_in(const World& world, const Group& group = Group()) {
  auto started = Session::start(group, world.config().c_str());
  EXPECT_TRUE(started.ok()) << started.error().to_string();
  return started.ok() ? std::move(started).value() : nullptr;
}

inline Code code_of(const Status& status) { return status.ok() ? Code::ok : status.error().code(); }
template <typename T>
Code code_of(const Result<T>& result) {
  return result.ok() ? Code::ok : result.error().code();
}

inline Status protect(Session& session, const char* name, std::vector<unsigned char>& data) {
  backstay_array array{};
  array.dims = 1;
  array.shape[0] = data.size();
  return session.protect(name, data.data(), &array, BACKSTAY_BYTE);
}

inline std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace backstay::client::test
