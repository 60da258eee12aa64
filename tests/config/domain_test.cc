#include "base/domain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace backstay {
namespace {

using ::testing::HasSubstr;

class Domain : public ::testing::Test {
 protected:
  ~Domain() override { std::filesystem::remove(path_); }
  void write(const std::string& text) { std::ofstream(path_) << text; }
  Result<std::string> of(const std::string& host, const std::string& label = "") {
    Config config;
    config.protect.domain = label;
    config.protect.domain_file = path_;
    return domain_of(config, host);
  }
  std::string refused(const std::string& text) {
    write(text);
    const auto domain = of("n1");
    if (domain.ok()) return "(accepted)";
    EXPECT_EQ(domain.error().code(), Code::config);
    return domain.error().message();
  }
  const std::string path_ = ::testing::TempDir() + "/backstay-domains-" +
                            ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(Domain, ComesFromTheFileByFullOrShortName) {
  write("# racks\nn1 a\n\nn2.site b # the other one\nn3\tc\n");
  EXPECT_EQ(*of("n1"), "a");
  EXPECT_EQ(*of("n1.site"), "a");
  EXPECT_EQ(*of("n2.site"), "b");
  EXPECT_EQ(*of("n2"), "");
  EXPECT_EQ(*of("n3"), "c");
  EXPECT_EQ(*of("n4"), "") << "it fails alone";
  EXPECT_EQ(*of("n1", "mine"), "mine");
  EXPECT_EQ(*domain_of(Config{}, "n1"), "");
}

TEST_F(Domain, WhatIsWrongIsNamedWithItsPlace) {
  EXPECT_THAT(refused("n1 a\nn2\n"), HasSubstr(":2: a line is a host and its domain"));
  EXPECT_THAT(refused("n1 rack a\n"), HasSubstr(":1: a line is a host and its domain"));
  EXPECT_THAT(refused("n2 a\nn2 b\n"), HasSubstr(":2: host n2 is in domain a already"));
  EXPECT_THAT(refused("n2 " + std::string(64, 'x')), HasSubstr("more than 63 characters"));
  EXPECT_EQ(refused("n2 a\nn2 a\n"), "(accepted)");
  const auto label = of("n1", std::string(64, 'x'));
  ASSERT_FALSE(label.ok());
  EXPECT_THAT(label.error().message(), HasSubstr("protect.domain"));
}

TEST_F(Domain, AFileThatIsMissingIsAnError) {
  const auto domain = of("n1");
  ASSERT_FALSE(domain.ok());
  EXPECT_EQ(domain.error().code(), Code::config);
  EXPECT_THAT(domain.error().message(), HasSubstr("protect.domain_file"));
}

}  // namespace
}  // namespace backstay
