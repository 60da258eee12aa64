// What every Ring does. Include it, then INSTANTIATE_TEST_SUITE_P(name, RingConformance, ...).
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "aligned_bytes.h"
#include "expect_status.h"
#include "file_system_under_test.h"
#include "io/ring.h"

namespace backstay::testing {

struct RingUnderTest {
  FileSystemUnderTest files;
  std::unique_ptr<io::Ring> ring;
};

struct RingCase {
  std::string name;
  // `memory` is what a caller would register.
  std::function<RingUnderTest(unsigned depth, std::span<std::byte> memory)> make;
};

inline std::string ring_case_name(const ::testing::TestParamInfo<RingCase>& info) {
  return info.param.name;
}

class RingConformance : public ::testing::TestWithParam<RingCase> {
 protected:
  static constexpr std::size_t piece_bytes = 64 * 1024;
  static constexpr unsigned ring_depth = 8;

  RingConformance()
      : memory_(ring_depth * piece_bytes), under_(GetParam().make(ring_depth, memory_.all())) {}

  std::unique_ptr<io::File> open(io::Open how, const std::string& name = "f") {
    auto file = under_.files.fs->open(under_.files.root + "/" + name, how);
    EXPECT_TRUE(is_ok(file));
    return file.ok() ? std::move(file).value() : nullptr;
  }
  io::Ring& ring() { return *under_.ring; }
  std::span<std::byte> piece(std::size_t index) {
    return memory_.part(index * piece_bytes, piece_bytes);
  }

  // Everything that is in flight, by tag; each tag once.
  std::map<std::uint64_t, Status> reap_all() {
    std::map<std::uint64_t, Status> all;
    while (ring().in_flight() > 0) {
      auto some = ring().reap(true);
      EXPECT_FALSE(some.empty()) << "reap(true) returned nothing while something was in flight";
      if (some.empty()) return all;
      for (auto& one : some) {
        EXPECT_TRUE(all.emplace(one.tag, one.status).second) << "tag " << one.tag << " came twice";
      }
    }
    return all;
  }

  void write_pattern(io::File& file, unsigned pieces) {
    for (unsigned i = 0; i < pieces; ++i) {
      fill_pattern(piece(i), 7, i * piece_bytes);
      ring().write(file, i * piece_bytes, piece(i), i);
    }
    for (const auto& [tag, status] : reap_all()) EXPECT_TRUE(is_ok(status)) << tag;
  }

  AlignedBytes memory_;
  RingUnderTest under_;
};

TEST_P(RingConformance, NothingInFlightNothingReaped) {
  EXPECT_EQ(ring().depth(), ring_depth);
  EXPECT_EQ(ring().in_flight(), 0u);
  EXPECT_TRUE(ring().reap(true).empty());
  EXPECT_TRUE(ring().reap(false).empty());
}

TEST_P(RingConformance, AsManyAsItsDepthAreWrittenAndReadBack) {
  auto out = open(io::Open::create_direct);
  for (unsigned i = 0; i < ring_depth; ++i) {
    fill_pattern(piece(i), 7, (ring_depth - 1 - i) * piece_bytes);
    ring().write(*out, (ring_depth - 1 - i) * piece_bytes, piece(i), 100 + i);
  }
  EXPECT_EQ(ring().in_flight(), ring_depth);
  const auto written = reap_all();
  ASSERT_EQ(written.size(), ring_depth);
  for (const auto& [tag, status] : written) EXPECT_TRUE(is_ok(status)) << tag;
  ASSERT_TRUE(is_ok(out->sync()));

  auto in = open(io::Open::read_direct);
  std::fill(memory_.all().begin(), memory_.all().end(), std::byte{0});
  for (unsigned i = 0; i < ring_depth; ++i) ring().read(*in, i * piece_bytes, piece(i), i);
  ASSERT_EQ(reap_all().size(), ring_depth);
  EXPECT_EQ(first_difference(memory_.all(), 7), memory_.all().size());
}

TEST_P(RingConformance, ManyRoundsReuseTheRing) {
  auto file = open(io::Open::create_direct);
  std::set<std::uint64_t> tags;
  for (std::uint64_t i = 0; i < 20 * ring_depth;) {
    while (ring().in_flight() < ring_depth && i < 20 * ring_depth) {
      ring().write(*file, (i % ring_depth) * piece_bytes, piece(i % ring_depth).first(4096), i);
      ++i;
    }
    for (const auto& one : ring().reap(true)) {
      EXPECT_TRUE(is_ok(one.status));
      EXPECT_TRUE(tags.insert(one.tag).second);
    }
  }
  for (const auto& [tag, status] : reap_all()) EXPECT_TRUE(tags.insert(tag).second);
  EXPECT_EQ(tags.size(), 20u * ring_depth);
}

TEST_P(RingConformance, AReadPastTheEndIsCorruptAndTheOthersAreFine) {
  auto out = open(io::Open::create_direct);
  write_pattern(*out, 3);
  auto in = open(io::Open::read_direct);
  ring().read(*in, 2 * piece_bytes, piece(0), 0);         // to the end exactly
  ring().read(*in, 2 * piece_bytes + 4096, piece(1), 1);  // begins before the end
  ring().read(*in, 3 * piece_bytes, piece(2), 2);         // begins at the end
  ring().read(*in, 100 * piece_bytes, piece(3), 3);       // far behind
  const auto done = reap_all();
  ASSERT_EQ(done.size(), 4u);
  EXPECT_TRUE(is_ok(done.at(0)));
  EXPECT_EQ(first_difference(piece(0), 7, 2 * piece_bytes), piece_bytes);
  for (const std::uint64_t tag : {1, 2, 3}) {
    EXPECT_TRUE(fails_with(done.at(tag), Code::corrupt)) << tag;
  }
}

TEST_P(RingConformance, AFileThatEndsInABlockIsCorruptThere) {
  {
    auto out = open(io::Open::create);
    ASSERT_TRUE(is_ok(out->write_at(0, pattern(5000, 7))));
  }
  auto in = open(io::Open::read_direct);
  ring().read(*in, 0, piece(0).first(4096), 0);
  ring().read(*in, 0, piece(1).first(8192), 1);
  ring().read(*in, 4096, piece(2).first(4096), 2);
  const auto done = reap_all();
  ASSERT_EQ(done.size(), 3u);
  EXPECT_TRUE(is_ok(done.at(0)));
  EXPECT_TRUE(fails_with(done.at(1), Code::corrupt));
  EXPECT_TRUE(fails_with(done.at(2), Code::corrupt));
}

TEST_P(RingConformance, AnEmptyRequestCompletes) {
  auto file = open(io::Open::create_direct);
  ring().write(*file, 0, {}, 5);
  EXPECT_EQ(ring().in_flight(), 1u);
  const auto done = reap_all();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_TRUE(is_ok(done.at(5)));
}

TEST_P(RingConformance, UnregisteredAndLargeMemoryWorksToo) {
  AlignedBytes own(5 << 20);
  fill_pattern(own.all(), 9);
  auto out = open(io::Open::create_direct);
  ring().write(*out, 4096, own.all(), 1);
  EXPECT_TRUE(is_ok(reap_all().at(1)));
  std::fill(own.all().begin(), own.all().end(), std::byte{0});
  auto in = open(io::Open::read_direct);
  ring().read(*in, 4096, own.all(), 2);
  EXPECT_TRUE(is_ok(reap_all().at(2)));
  EXPECT_EQ(first_difference(own.all(), 9), own.all().size());
}

TEST_P(RingConformance, BufferedFilesTakeAnyLength) {
  auto file = open(io::Open::create);
  fill_pattern(piece(0), 7);
  ring().write(*file, 0, piece(0).first(1001), 1);
  EXPECT_TRUE(is_ok(reap_all().at(1)));
  ring().read(*file, 1, piece(1).first(1000), 2);
  EXPECT_TRUE(is_ok(reap_all().at(2)));
  EXPECT_EQ(first_difference(piece(1).first(1000), 7, 1), 1000u);
}

TEST_P(RingConformance, AFailedRequestIsReportedAndTheRingLives) {
  { auto file = open(io::Open::create); }
  auto file = open(io::Open::read);
  ring().write(*file, 0, piece(0), 1);
  EXPECT_FALSE(reap_all().at(1).ok()) << "a file opened for reading was written";
  auto good = open(io::Open::create_direct, "g");
  ring().write(*good, 0, piece(0), 2);
  EXPECT_TRUE(is_ok(reap_all().at(2)));
}

TEST_P(RingConformance, SeveralFilesAtOnce) {
  auto a = open(io::Open::create_direct, "a");
  auto b = open(io::Open::create_direct, "b");
  fill_pattern(piece(0), 1);
  fill_pattern(piece(1), 2);
  ring().write(*a, 0, piece(0), 1);
  ring().write(*b, 0, piece(1), 2);
  for (const auto& [tag, status] : reap_all()) EXPECT_TRUE(is_ok(status));
  ring().read(*a, 0, piece(1), 3);
  ring().read(*b, 0, piece(0), 4);
  for (const auto& [tag, status] : reap_all()) EXPECT_TRUE(is_ok(status));
  EXPECT_EQ(first_difference(piece(1), 1), piece_bytes);
  EXPECT_EQ(first_difference(piece(0), 2), piece_bytes);
}

TEST_P(RingConformance, DestructionWaitsForWhatIsInFlight) {
  auto file = open(io::Open::create_direct);
  for (unsigned i = 0; i < ring_depth; ++i) {
    fill_pattern(piece(i), 7, i * piece_bytes);
    ring().write(*file, i * piece_bytes, piece(i), i);
  }
  under_.ring.reset();
  const auto bytes =
      io::read_file(*under_.files.fs, under_.files.root + "/f", ring_depth * piece_bytes);
  ASSERT_TRUE(is_ok(bytes));
  ASSERT_EQ(bytes->size(), ring_depth * piece_bytes);
  EXPECT_EQ(first_difference(*bytes, 7), bytes->size());
}

TEST_P(RingConformance, MayBeHandedToAnotherThread) {
  auto file = open(io::Open::create_direct);
  write_pattern(*file, 2);
  std::thread([&] {
    ring().write(*file, 2 * piece_bytes, piece(2), 1);
    EXPECT_TRUE(is_ok(reap_all().at(1)));
  }).join();
  ring().write(*file, 3 * piece_bytes, piece(3), 2);
  EXPECT_TRUE(is_ok(reap_all().at(2)));
}

}  // namespace backstay::testing
