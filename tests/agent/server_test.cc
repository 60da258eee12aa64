// The main loop over a real socket: it must answer whoever comes, whatever others do.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "server_fixture.h"

namespace backstay::agent::testing {
namespace {

TEST_F(ServerTest, AnswersATool) { EXPECT_FALSE(status().json.empty()); }

TEST_F(ServerTest, SilentPeersHoldNobodyUp) {
  const Peer silent(path());
  const Peer another = tool();
  EXPECT_FALSE(status().json.empty());
}

TEST_F(ServerTest, EndsWithPeersConnected) {
  const Peer silent(path());
  EXPECT_FALSE(status().json.empty());
  // TearDown asks it to end and waits.
}

TEST_F(ServerTest, TellsAboutAFolderWhoseNameIsNotUtf8) {
  Peer rank = join("job", folder_ + "/d\xff");
  EXPECT_EQ(rank.take<wire::Welcome>().newest, 0u);
  const auto told = nlohmann::json::parse(status().json, nullptr, false);
  ASSERT_TRUE(told.is_object());
  EXPECT_EQ(told["jobs"][0]["dir"], folder_ + "/d\xef\xbf\xbd");
}

}  // namespace
}  // namespace backstay::agent::testing
