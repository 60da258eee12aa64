#include "meet/place.h"

#include <gtest/gtest.h>

#include <map>

#include "expect_status.h"

namespace backstay::meet {
namespace {

using testing::fails_with;
using testing::is_ok;

Variables variables(const std::map<std::string, std::string>& set) {
  return [&set](const char* name) {
    const auto found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  };
}

TEST(Place, EachLauncherHasVariablesOfItsOwn) {
  const std::map<std::string, std::string> all{{"OMPI_COMM_WORLD_RANK", "1"},
                                               {"OMPI_COMM_WORLD_SIZE", "4"},
                                               {"PMI_RANK", "2"},
                                               {"PMI_SIZE", "5"},
                                               {"SLURM_PROCID", "3"},
                                               {"SLURM_STEP_NUM_TASKS", "6"},
                                               {"SLURM_NTASKS", "60"}};
  for (const auto& [launcher, rank, ranks] :
       {std::tuple(Launcher::openmpi, 1U, 4U), std::tuple(Launcher::mpich, 2U, 5U),
        std::tuple(Launcher::slurm, 3U, 6U)}) {
    const auto place = place_by(launcher, variables(all));
    ASSERT_TRUE(is_ok(place));
    EXPECT_EQ(place->rank, rank);
    EXPECT_EQ(place->ranks, ranks);
    EXPECT_EQ(launcher_of(launcher_name(launcher)), launcher);
  }
}

TEST(Place, SlurmBeforeItHadTheStepsNumber) {
  const std::map<std::string, std::string> set{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}};
  EXPECT_TRUE(is_ok(place_by(Launcher::slurm, variables(set))));
}

TEST(Place, WhatIsMissingOrNoNumberIsNamed) {
  for (const auto& [set, named] :
       std::vector<std::pair<std::map<std::string, std::string>, const char*>>{
           {{}, "PMI_RANK"},
           {{{"PMI_RANK", "0"}}, "PMI_SIZE"},
           {{{"PMI_RANK", "zero"}, {"PMI_SIZE", "1"}}, "PMI_RANK"},
           {{{"PMI_RANK", "-1"}, {"PMI_SIZE", "1"}}, "PMI_RANK"},
           {{{"PMI_RANK", ""}, {"PMI_SIZE", "1"}}, "PMI_RANK"},
           {{{"PMI_RANK", "1"}, {"PMI_SIZE", "1 "}}, "PMI_SIZE"},
           {{{"PMI_RANK", "1"}, {"PMI_SIZE", "1"}}, "PMI_RANK"}}) {
    const auto place = place_by(Launcher::mpich, variables(set));
    ASSERT_TRUE(fails_with(place, Code::invalid));
    EXPECT_NE(place.error().message().find(named), std::string::npos) << place.error().message();
  }
  EXPECT_EQ(launcher_of("aprun"), std::nullopt);
}

}  // namespace
}  // namespace backstay::meet
