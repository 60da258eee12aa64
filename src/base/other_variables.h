// The variables of the environment that are read beside those of the configuration's keys.
#pragma once

#include <array>

namespace backstay {

inline constexpr std::array other_variables = {
    "BACKSTAY_ATTEMPT",      "BACKSTAY_CAPTURE",        "BACKSTAY_CAPTURE_MIB",
    "BACKSTAY_CAPTURE_ROOT", "BACKSTAY_COLLECTOR",      "BACKSTAY_CAPTURE_POOL_KIB",
    "BACKSTAY_DEFAULT_JOB",  "BACKSTAY_FAILPOINT",      "BACKSTAY_COLLECTOR_PROGRAM",
    "BACKSTAY_FRESH",        "BACKSTAY_FROM",           "BACKSTAY_LAUNCH",
    "BACKSTAY_MEETING",      "BACKSTAY_MEETING_SECRET", "BACKSTAY_PROGRAM",
    "BACKSTAY_PYTHON"};
// Of tests and benchmarks: all with one of these prefixes.
inline constexpr std::array prefixes_of_tests = {
    "BACKSTAY_TEST_", "BACKSTAY_SEED",  "BACKSTAY_SOAK", "BACKSTAY_SANITIZE", "BACKSTAY_SIM",
    "BACKSTAY_CRASH", "BACKSTAY_FUZZ_", "BACKSTAY_MINI", "BACKSTAY_GARBAGE",  "BACKSTAY_IN_CHILD",
    "BACKSTAY_PEER_", "BACKSTAY_BENCH", "BACKSTAY_PIP_", "BACKSTAY_FAKE_CUDA"};

}  // namespace backstay
