// A routed file comes back under another name first; a file that is already there is not ours.
#include "client/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "world.h"

namespace backstay::client::test {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Status bring_back(const std::string& path, const std::string& content) {
  BACKSTAY_ASSIGN(auto file, ReturningFile::create(path, content.size(), 0600));
  BACKSTAY_TRY(write_routed(file.descriptor(), 0, std::as_bytes(std::span(content))));
  return file.publish();
}

TEST(ReturningFile, ComesThroughNobodysLinkOrPipe) {
  const World world;
  const std::string path = world.folder() + "/dump";
  const std::string others = world.folder() + "/others";
  const std::string beside = path + "#restart";
  std::ofstream(others) << "precious";
  std::filesystem::create_hard_link(others, beside);
  EXPECT_TRUE(bring_back(path, "one").ok());
  EXPECT_EQ(text_of(path), "one");
  std::filesystem::create_symlink(others, beside);
  EXPECT_TRUE(bring_back(path, "two").ok());
  EXPECT_EQ(text_of(path), "two");
  EXPECT_EQ(text_of(others), "precious");
  // Opening it to write would block until a reader comes.
  ASSERT_EQ(::mkfifo(beside.c_str(), 0600), 0);
  EXPECT_TRUE(bring_back(path, "three").ok());
  EXPECT_EQ(text_of(path), "three");
}

}  // namespace
}  // namespace backstay::client::test
