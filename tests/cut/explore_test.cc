// Every interleaving of small programs of 2 and 3 ranks, with a cut asked for at any moment.
// BACKSTAY_CUT_STATES bounds the states of each (the sanitizers').
#include "cut/explore.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "cut/programs.h"

namespace backstay::cut {
namespace {

std::uint64_t states_max() {
  const char* text = std::getenv("BACKSTAY_CUT_STATES");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : UINT64_MAX;
}

void play_all(const std::vector<Named>& programs) {
  for (const Named& named : programs) {
    const Scene scene = with_expected(named.scene);
    ASSERT_TRUE(!scene.expected.empty()) << named.name << ": does not end without a cut";
    const Found found = explore(scene, states_max());
    EXPECT_EQ(found.broken, "") << named.name;
    if (named.always_saves) {
      EXPECT_EQ(found.without, 0U) << named.name << ": a cut was not saved";
    }
    if (found.complete) {
      EXPECT_GT(found.with_cut, 0U) << named.name;
    }
    EXPECT_GT(found.states, 1000U) << named.name;
  }
}

TEST(Cut, EveryInterleavingOfSmallProgramsKeepsThePromises) { play_all(small_programs()); }

// Millions of states; for `make soak`.
TEST(LargeCut, DISABLED_EveryInterleavingOfLargerOnes) { play_all(small_programs(true)); }

// A promise that is broken is seen: in this history rank 1 would have to wait for a message that is
// never sent.
TEST(CutChecker, SeesAProgramThatDoesNotEnd) {
  Scene scene;
  scene.programs = {{op::barrier()}, {op::recv(0), op::barrier()}};
  scene.members = {{0, 1}};
  EXPECT_NE(explore(scene).broken, "");
  EXPECT_TRUE(with_expected(scene).expected.empty());
}

}  // namespace
}  // namespace backstay::cut
