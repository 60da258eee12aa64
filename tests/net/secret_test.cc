#include "net/secret.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "expect_status.h"
#include "temp_directory.h"

namespace backstay {
namespace {

using testing::fails_with;
using testing::is_ok;

class SecretTest : public ::testing::Test {
 protected:
  std::string path() const { return directory_.path() + "/key"; }
  void write(const std::string& text, mode_t mode = 0600) const {
    std::ofstream(path()) << text;
    ASSERT_EQ(::chmod(path().c_str(), mode), 0);
  }
  testing::TempDirectory directory_;
};

TEST_F(SecretTest, IsMadeOnceAndReadAgain) {
  const auto made = net::load_or_create_secret(path());
  ASSERT_TRUE(is_ok(made));
  struct stat facts {};
  ASSERT_EQ(::stat(path().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0600u);
  EXPECT_EQ(facts.st_size, 65);
  const auto again = net::load_or_create_secret(path());
  ASSERT_TRUE(is_ok(again));
  EXPECT_TRUE(*made == *again);
  EXPECT_FALSE(*made == net::Secret::random());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_.path()), {}), 1)
      << "a draft was left";
}

TEST_F(SecretTest, ManyAtOnceGetTheSame) {
  std::vector<Result<net::Secret>> secrets(8, Error(Code::internal, ""));
  std::vector<std::thread> threads;
  for (auto& secret : secrets)
    threads.emplace_back([&] { secret = net::load_or_create_secret(path()); });
  for (auto& thread : threads) thread.join();
  for (const auto& secret : secrets) {
    ASSERT_TRUE(is_ok(secret));
    EXPECT_TRUE(*secret == *secrets[0]);
  }
}

TEST_F(SecretTest, AMissingOneIsNotFound) {
  EXPECT_TRUE(fails_with(net::load_secret(path()), Code::not_found));
}

TEST_F(SecretTest, OneThatOthersMayReadIsRefusedWithWhatToDo) {
  ASSERT_TRUE(is_ok(net::load_or_create_secret(path())));
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0610, 0601}) {
    ASSERT_EQ(::chmod(path().c_str(), mode), 0);
    const auto secret = net::load_or_create_secret(path());
    ASSERT_TRUE(fails_with(secret, Code::permission)) << std::oct << mode;
    EXPECT_NE(secret.error().message().find("chmod 600 " + path()), std::string::npos);
  }
  ASSERT_EQ(::chmod(path().c_str(), 0400), 0);
  EXPECT_TRUE(is_ok(net::load_secret(path())));
}

TEST_F(SecretTest, OneOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_TRUE(is_ok(net::load_or_create_secret(path())));
  ASSERT_EQ(::chown(path().c_str(), 12345, 12345), 0);
  EXPECT_TRUE(fails_with(net::load_secret(path()), Code::permission));
}

TEST_F(SecretTest, AnythingElseIsRefused) {
  const std::string good(64, 'a');
  for (const std::string& text :
       {std::string(), good, good + "\n\n", good + "a\n", std::string(63, 'a') + "g\n",
        std::string(63, 'a') + "\n", std::string(65, '\0')}) {
    write(text);
    EXPECT_TRUE(fails_with(net::load_or_create_secret(path()), Code::format)) << text;
  }
  write(good + "\n");
  EXPECT_TRUE(is_ok(net::load_secret(path())));
}

TEST_F(SecretTest, ALinkOrAFolderIsNoSecret) {
  ASSERT_TRUE(is_ok(net::load_or_create_secret(directory_.path() + "/real")));
  ASSERT_EQ(::symlink("real", path().c_str()), 0);
  EXPECT_FALSE(net::load_or_create_secret(path()).ok());
  std::filesystem::remove(path());
  std::filesystem::create_directory(path());
  EXPECT_TRUE(fails_with(net::load_secret(path()), Code::format));
}

}  // namespace
}  // namespace backstay
