// The agent's log.
#include "base/log.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace backstay {
namespace {

std::size_t lines_with(const std::string& path, const std::string& words) {
  std::ifstream file(path);
  std::size_t lines = 0;
  for (std::string line; std::getline(file, line);) lines += line.find(words) != line.npos ? 1 : 0;
  return lines;
}

TEST(Log, WhatRepeatsTheLineBeforeIsLeftOutAndCounted) {
  std::string folder = ::testing::TempDir() + "backstay-log-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/log";
  ASSERT_TRUE(open_log(path, "info").ok());
  for (int i = 0; i < 5; ++i) spdlog::warn("a stranger calls");
  spdlog::info("a version came");
  spdlog::warn("a stranger calls");
  EXPECT_EQ(lines_with(path, "a stranger calls"), 2u);
  EXPECT_EQ(lines_with(path, "4 duplicate"), 1u);
  EXPECT_EQ(lines_with(path, "a version came"), 1u);
  spdlog::set_default_logger(nullptr);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace backstay
