// Which versions retention removes: pure, of what the catalog says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/catalog.h"

namespace backstay::agent::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

StoredVersion stored(VersionNumber number, Level level) {
  StoredVersion one;
  one.version = number;
  one.level = level;
  return one;
}

StoredVersion undecided(VersionNumber number) {
  StoredVersion one = stored(number, Level::none);
  one.undecided = true;
  return one;
}

TEST(Retention, KeepsTheNewest) {
  const std::vector<StoredVersion> all = {stored(1, Level::local), stored(2, Level::local),
                                          stored(3, Level::local)};
  EXPECT_THAT(expired(all, 2), ElementsAre(1));
  EXPECT_THAT(expired(all, 1), ElementsAre(2, 1));
  EXPECT_THAT(expired(all, 0), ElementsAre(2, 1));
}

// Until a newer one is protected, the loss of a node would leave nothing.
TEST(Retention, KeepsTheNewestProtectedOneBehindThoseThatAreOnlyLocal) {
  std::vector<StoredVersion> all = {stored(1, Level::protected_), stored(2, Level::protected_),
                                    stored(3, Level::local), stored(4, Level::local)};
  EXPECT_THAT(expired(all, 1), ElementsAre(3, 1));
  EXPECT_THAT(expired(all, 2), ElementsAre(1));
  all.back().level = Level::protected_;
  EXPECT_THAT(expired(all, 1), ElementsAre(3, 2, 1));
}

TEST(Retention, ADamagedOrDoubtfulOneIsNotTheSafest) {
  std::vector<StoredVersion> all = {stored(1, Level::protected_), stored(2, Level::protected_),
                                    stored(3, Level::local)};
  all[1].damage = "wrong";
  EXPECT_THAT(expired(all, 1), ElementsAre(2));
  all[1].damage.clear();
  all[1].doubtful = true;
  EXPECT_THAT(expired(all, 1), ElementsAre(2));
}

TEST(Retention, UndecidedOnesGoWithThoseThatAreTooOld) {
  const std::vector<StoredVersion> all = {undecided(1), stored(2, Level::local), undecided(3),
                                          stored(4, Level::local), undecided(5)};
  EXPECT_THAT(expired(all, 2), ElementsAre(1));
  EXPECT_THAT(expired(all, 3), IsEmpty());
  EXPECT_THAT(expired({undecided(1), undecided(2)}, 1), IsEmpty());
}

}  // namespace
}  // namespace backstay::agent::testing
