#include "base/domain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
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

TEST_F(Domain, AFolderInTheFilesPlaceIsAnError) {
  std::filesystem::create_directory(path_);
  const auto domain = of("n1");
  ASSERT_FALSE(domain.ok());
  EXPECT_EQ(domain.error().code(), Code::config);
  EXPECT_THAT(domain.error().message(), HasSubstr("is a directory"));
}

// What Slurm's plugins topology/flat, tree and block put into the environment of a task.
class SlurmsTopology : public Domain {
 protected:
  SlurmsTopology() { set("", ""); }
  ~SlurmsTopology() override { set("", ""); }
  static void set(const std::string& address, const std::string& pattern) {
    for (const auto& [name, value] : {std::pair("SLURM_TOPOLOGY_ADDR", address),
                                      std::pair("SLURM_TOPOLOGY_ADDR_PATTERN", pattern)}) {
      value.empty() ? ::unsetenv(name) : ::setenv(name, value.c_str(), 1);
    }
  }
  static std::string with(const std::string& address, const std::string& pattern,
                          const std::string& host = "n7") {
    set(address, pattern);
    return *domain_of(Config{}, host);
  }
};

TEST_F(SlurmsTopology, TheLowestSwitchIsTheDomain) {
  EXPECT_EQ(with("s0.s4.n7", "switch.switch.node"), "s4");
  EXPECT_EQ(with("s4.n7", "switch.node"), "s4");
  EXPECT_EQ(with(".core.tor16.n7", "switch.switch.switch.node"), "tor16");
  EXPECT_EQ(with("s0.s[4-5].n7", "switch.switch.node"), "s[4-5]") << "it hangs on two";
  EXPECT_EQ(with("b8.n7", "block.node"), "b8");
  EXPECT_EQ(with("s0.s4.n7", "switch.switch.node", "n7.site.org"), "s4");
  EXPECT_EQ(with("s0.s4.n7.site.org", "switch.switch.node", "n7.site.org"), "s4");
}

TEST_F(SlurmsTopology, WithoutASwitchOfItsOwnANodeFailsAlone) {
  EXPECT_EQ(with("n7", "node"), "") << "flat";
  EXPECT_EQ(with("n7.site", "node"), "") << "flat, and a dot in the name";
  EXPECT_EQ(with("s0..n7", "switch.switch.node"), "") << "on no switch of the lowest level";
  EXPECT_EQ(with("torus:1:2:3.n7", "torus:x:y:z.node"), "") << "each node has its own place";
  EXPECT_EQ(with("s4.n7", ""), "");
  EXPECT_EQ(with("", "switch.node"), "");
  EXPECT_EQ(with("n7", "switch.node"), "");
  EXPECT_EQ(with(std::string(64, 'x') + ".n7", "switch.node"), "");
}

TEST_F(SlurmsTopology, OfAnotherNodeDoesNotCount) {
  EXPECT_EQ(with("s0.s4.n7", "switch.switch.node", "n8"), "");
}

TEST_F(SlurmsTopology, WhatIsConfiguredComesFirst) {
  set("s0.s4.n7", "switch.switch.node");
  write("n7 a\n");
  EXPECT_EQ(*of("n7"), "a");
  EXPECT_EQ(*of("n7", "mine"), "mine");
  write("n8 a\n");
  EXPECT_EQ(*of("n7"), "") << "the file knows better";
}

}  // namespace
}  // namespace backstay
