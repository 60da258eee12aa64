#include "bin/run/restart_policy.h"

#include <gtest/gtest.h>

namespace backstay::bin {
namespace {

using Decision = RestartPolicy::Decision;

TEST(RestartPolicy, RestartsAsOftenAsAllowedWhileVersionsAppear) {
  RestartPolicy policy(3);
  EXPECT_EQ(policy.after_failure(1), Decision::restart);
  EXPECT_EQ(policy.after_failure(2), Decision::restart);
  EXPECT_EQ(policy.after_failure(3), Decision::restart);
  EXPECT_EQ(policy.after_failure(4), Decision::no_retries_left);
  EXPECT_EQ(policy.restarts(), 3u);
}

TEST(RestartPolicy, TwoRestartsWithoutANewVersionAreACrashLoop) {
  RestartPolicy policy(10);
  EXPECT_EQ(policy.after_failure(5), Decision::restart);
  EXPECT_EQ(policy.after_failure(5), Decision::restart);
  EXPECT_EQ(policy.after_failure(5), Decision::crash_loop);
}

TEST(RestartPolicy, AVersionInBetweenStartsTheCountAgain) {
  RestartPolicy policy(10);
  EXPECT_EQ(policy.after_failure(0), Decision::restart);
  EXPECT_EQ(policy.after_failure(0), Decision::restart);
  EXPECT_EQ(policy.after_failure(1), Decision::restart);
  EXPECT_EQ(policy.after_failure(1), Decision::restart);
  EXPECT_EQ(policy.after_failure(1), Decision::crash_loop);
}

TEST(RestartPolicy, ADamagedNewestVersionIsNoProgress) {
  RestartPolicy policy(10);
  EXPECT_EQ(policy.after_failure(5), Decision::restart);
  EXPECT_EQ(policy.after_failure(4), Decision::restart);
  EXPECT_EQ(policy.after_failure(3), Decision::crash_loop);
}

TEST(RestartPolicy, ALostHostIsNoCrashLoop) {
  RestartPolicy policy(10);
  EXPECT_EQ(policy.after_failure(5), Decision::restart);
  for (int host = 0; host < 4; ++host) {
    EXPECT_EQ(policy.after_failure(5, /*host_lost=*/true), Decision::restart);
  }
}

TEST(RestartPolicy, WhatWasRefusedIsNotTriedAgain) {
  RestartPolicy policy(10);
  EXPECT_EQ(policy.after_failure(5, false, /*refused=*/true), Decision::refused);
  EXPECT_EQ(policy.restarts(), 0u);
}

TEST(RestartPolicy, NoRetries) {
  EXPECT_EQ(RestartPolicy(0).after_failure(0), Decision::no_retries_left);
}

}  // namespace
}  // namespace backstay::bin
