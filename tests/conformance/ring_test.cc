#include "io/faulty.h"
#include "io/uring.h"
#include "ring_conformance.h"

namespace backstay::testing {
namespace {

std::unique_ptr<io::Ring> take(Result<std::unique_ptr<io::Ring>> ring) {
  EXPECT_TRUE(is_ok(ring));
  return ring.ok() ? std::move(ring).value() : nullptr;
}

std::unique_ptr<io::Ring> faulty(std::unique_ptr<io::Ring> inner, io::FaultPlan plan) {
  return io::make_faulty_ring(std::move(inner), std::make_shared<io::Faults>(plan));
}

bool has_io_uring() { return io::make_uring({}, nullptr).ok(); }

std::vector<RingCase> ring_cases() {
  std::vector<RingCase> all = {
      {"Threads",
       [](unsigned depth, auto) -> RingUnderTest {
         return {posix_files(), take(io::make_thread_ring(depth, 3))};
       }},
      {"OneThread",
       [](unsigned depth, auto) -> RingUnderTest {
         return {posix_files(), take(io::make_thread_ring(depth, 1))};
       }},
      {"Default",
       [](unsigned depth, auto memory) -> RingUnderTest {
         return {posix_files(), take(io::make_ring({depth, true, {memory}}, nullptr))};
       }},
      {"Memory",
       [](unsigned depth, auto) -> RingUnderTest {
         return {memory_files(), io::make_memory_ring({.depth = depth, .seed = 1})};
       }},
      {"MemoryOtherSeed",
       [](unsigned depth, auto) -> RingUnderTest {
         return {memory_files(), io::make_memory_ring({.depth = depth, .seed = 2})};
       }},
      {"FaultyOnThreads",
       [](unsigned depth, auto) -> RingUnderTest {
         return {posix_files(), faulty(take(io::make_thread_ring(depth, 2)), {})};
       }},
  };
  if (has_io_uring()) {
    all.push_back({"Uring", [](unsigned depth, auto) -> RingUnderTest {
                     return {posix_files(), take(io::make_uring({.depth = depth}, nullptr))};
                   }});
    all.push_back({"UringRegistered", [](unsigned depth, auto memory) -> RingUnderTest {
                     return {posix_files(), take(io::make_uring({depth, true, {memory}}, nullptr))};
                   }});
  }
  for (std::uint64_t at = 1; at <= 9; ++at) {
    all.push_back({"ShortTransferAtRequest" + std::to_string(at),
                   [at](unsigned depth, auto) -> RingUnderTest {
                     return {memory_files(), faulty(io::make_memory_ring({.depth = depth}),
                                                    {io::Fault::short_transfer, at})};
                   }});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, RingConformance, ::testing::ValuesIn(ring_cases()), ring_case_name);

}  // namespace
}  // namespace backstay::testing
