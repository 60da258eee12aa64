// What every Tier does. Include it, then INSTANTIATE_TEST_SUITE_P(name, TierConformance, ...).
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "aligned_bytes.h"
#include "expect_status.h"
#include "tier/tier.h"

namespace backstay::testing {

struct TierUnderTest {
  std::shared_ptr<void> keep;  // whatever the tier needs
  std::unique_ptr<tier::Tier> tier;
};

struct TierCase {
  std::string name;
  std::function<TierUnderTest()> make;  // an empty tier
};

inline std::string tier_case_name(const ::testing::TestParamInfo<TierCase>& info) {
  return info.param.name;
}

class TierConformance : public ::testing::TestWithParam<TierCase> {
 protected:
  static constexpr std::size_t piece_bytes = 64 * 1024;
  using Names = std::vector<std::string>;

  TierConformance() : under_(GetParam().make()) {}
  tier::Tier& tier() { return *under_.tier; }

  // Writes `pieces` pieces of the content `seed`, the last first, and seals.
  Status write(const std::string& name, unsigned pieces, std::uint64_t seed, std::uint64_t guess) {
    AlignedBytes bytes(pieces * piece_bytes);
    fill_pattern(bytes.all(), seed);
    BACKSTAY_ASSIGN(auto writer, tier().create(name, guess));
    Status failed;
    const auto reap = [&] {
      for (const auto& one : writer->reap(true)) {
        if (!one.status.ok()) failed = one.status;
      }
    };
    for (unsigned i = pieces; i-- > 0;) {
      if (writer->in_flight() == writer->depth()) reap();
      writer->write(i * piece_bytes, bytes.part(i * piece_bytes, piece_bytes), i);
    }
    while (writer->in_flight() > 0) reap();
    BACKSTAY_TRY(failed);
    return writer->seal(pieces * piece_bytes);
  }

  Status read_one(tier::Reader& reader, std::uint64_t offset, std::span<std::byte> to) {
    reader.read(offset, to, 77);
    const auto done = reader.reap(true);
    EXPECT_EQ(done.size(), 1u);
    if (done.empty()) return Error(Code::internal, "nothing was reaped");
    EXPECT_EQ(done[0].tag, 77u);
    return done[0].status;
  }

  // The name holds `pieces` pieces of the content `seed` and not a byte more.
  void expect_content(const std::string& name, unsigned pieces, std::uint64_t seed) {
    auto reader = tier().open(name);
    ASSERT_TRUE(is_ok(reader)) << name;
    AlignedBytes to(pieces * piece_bytes);
    ASSERT_TRUE(is_ok(read_one(**reader, 0, to.all()))) << name;
    EXPECT_EQ(first_difference(to.all(), seed), to.all().size()) << name;
    AlignedBytes block(4096);
    EXPECT_TRUE(fails_with(read_one(**reader, pieces * piece_bytes, block.all()), Code::corrupt))
        << name;
  }

  Names list(const std::string& prefix) {
    const auto names = tier().list(prefix);
    EXPECT_TRUE(is_ok(names)) << prefix;
    return names.ok() ? *names : Names{"(error)"};
  }

  TierUnderTest under_;
};

TEST_P(TierConformance, WhatWasPutIsGot) {
  ASSERT_TRUE(is_ok(tier().put("job/v1/commit.local", pattern(512, 1))));
  ASSERT_TRUE(is_ok(tier().put("empty", {})));
  EXPECT_EQ(*tier().get("job/v1/commit.local", 512), pattern(512, 1));
  EXPECT_TRUE(tier().get("empty", 0)->empty());
  ASSERT_TRUE(is_ok(tier().put("job/v1/commit.local", pattern(7, 2))));
  EXPECT_EQ(*tier().get("job/v1/commit.local", 512), pattern(7, 2));
}

TEST_P(TierConformance, GetNamesItsFailures) {
  ASSERT_TRUE(is_ok(tier().put("a/b", pattern(100, 1))));
  EXPECT_TRUE(fails_with(tier().get("a/b", 99), Code::too_large));
  EXPECT_TRUE(fails_with(tier().get("a/c", 99), Code::not_found));
  EXPECT_TRUE(fails_with(tier().get("c/d", 99), Code::not_found));
  EXPECT_TRUE(fails_with(tier().open("a/c"), Code::not_found));
}

TEST_P(TierConformance, NamesThatWouldLeaveTheTierAreRefused) {
  const std::string names[] = {"",
                               "/",
                               "/etc/passwd",
                               "a//b",
                               "a/",
                               "..",
                               "a/..",
                               "../a",
                               ".",
                               "a/.b",
                               ".spare",
                               "a b",
                               "a\nb",
                               "a\\b",
                               "a.tmp",
                               "ä",
                               "a/b.tmp/c",
                               std::string("a\0b", 3),
                               std::string(201, 'a'),
                               std::string(1025, 'a')};
  for (const std::string& name : names) {
    EXPECT_TRUE(fails_with(tier().create(name, 0), Code::invalid)) << name;
    EXPECT_TRUE(fails_with(tier().open(name), Code::invalid)) << name;
    EXPECT_TRUE(fails_with(tier().put(name, {}), Code::invalid)) << name;
    EXPECT_TRUE(fails_with(tier().get(name, 1), Code::invalid)) << name;
    EXPECT_TRUE(fails_with(tier().remove(name), Code::invalid)) << name;
    if (name.empty()) continue;  // as a prefix it means everything
    EXPECT_TRUE(fails_with(tier().list(name), Code::invalid)) << name;
    EXPECT_TRUE(fails_with(tier().sync(name), Code::invalid)) << name;
  }
  EXPECT_TRUE(list("").empty()) << "a refused name left something";
}

TEST_P(TierConformance, NamesOfEveryAllowedKindAreTaken) {
  for (const std::string name : {"A", "z9", "a.b-c_d", "-a", "_", "a..b", "tmp", "a.tmp.b"}) {
    EXPECT_TRUE(is_ok(tier().put(name, pattern(3, 1)))) << name;
    EXPECT_TRUE(is_ok(tier().get(name, 3))) << name;
  }
}

TEST_P(TierConformance, ListShowsWhatIsDirectlyBelow) {
  for (const std::string name : {"job/v2/seg", "job/v1/seg", "job/v1/man", "job2/x", "top"}) {
    ASSERT_TRUE(is_ok(tier().put(name, {}))) << name;
  }
  EXPECT_EQ(list(""), (Names{"job", "job2", "top"}));
  EXPECT_EQ(list("job"), (Names{"v1", "v2"}));
  EXPECT_EQ(list("job/v1"), (Names{"man", "seg"}));
  EXPECT_EQ(list("top"), Names{});
  EXPECT_EQ(list("no"), Names{});
  EXPECT_EQ(list("no/no"), Names{});
}

TEST_P(TierConformance, BulkDataIsWrittenAndRead) {
  ASSERT_TRUE(is_ok(write("job/v1/seg", 20, 1, 20 * piece_bytes)));
  ASSERT_TRUE(is_ok(tier().sync("job/v1")));
  expect_content("job/v1/seg", 20, 1);
  EXPECT_EQ(list("job/v1"), Names{"seg"});
}

TEST_P(TierConformance, TheGuessMayBeWrong) {
  ASSERT_TRUE(is_ok(write("small", 3, 1, 40 * piece_bytes)));
  ASSERT_TRUE(is_ok(write("large", 30, 2, 4096)));
  ASSERT_TRUE(is_ok(write("unknown", 5, 3, 0)));
  expect_content("small", 3, 1);
  expect_content("large", 30, 2);
  expect_content("unknown", 5, 3);
}

TEST_P(TierConformance, SealCutsWhatIsBehind) {
  AlignedBytes bytes(piece_bytes);
  auto writer = tier().create("f", 0);
  ASSERT_TRUE(is_ok(writer));
  (*writer)->write(0, bytes.all(), 1);
  ASSERT_EQ((*writer)->reap(true).size(), 1u);
  ASSERT_TRUE(is_ok((*writer)->seal(8192)));
  auto reader = tier().open("f");
  ASSERT_TRUE(is_ok(reader));
  EXPECT_TRUE(is_ok(read_one(**reader, 4096, bytes.part(0, 4096))));
  EXPECT_TRUE(fails_with(read_one(**reader, 4096, bytes.part(0, 8192)), Code::corrupt));
}

TEST_P(TierConformance, ReadersKeepSeveralInFlight) {
  ASSERT_TRUE(is_ok(write("f", 8, 5, 0)));
  auto reader = tier().open("f");
  ASSERT_TRUE(is_ok(reader));
  ASSERT_GE((*reader)->depth(), 2u);
  AlignedBytes to(2 * piece_bytes);
  (*reader)->read(6 * piece_bytes, to.part(0, piece_bytes), 1);
  (*reader)->read(1 * piece_bytes, to.part(piece_bytes, piece_bytes), 2);
  EXPECT_EQ((*reader)->in_flight(), 2u);
  unsigned tags = 0;
  while ((*reader)->in_flight() > 0) {
    for (const auto& one : (*reader)->reap(true)) {
      EXPECT_TRUE(is_ok(one.status));
      tags |= 1u << one.tag;
    }
  }
  EXPECT_EQ(tags, 6u);
  EXPECT_TRUE((*reader)->reap(true).empty());
  EXPECT_EQ(first_difference(to.part(0, piece_bytes), 5, 6 * piece_bytes), piece_bytes);
  EXPECT_EQ(first_difference(to.part(piece_bytes, piece_bytes), 5, piece_bytes), piece_bytes);
}

TEST_P(TierConformance, SeveralStreamsAtOnceOutliveTheTier) {
  AlignedBytes bytes(2 * piece_bytes);
  auto a = tier().create("a", piece_bytes);
  auto b = tier().create("b", piece_bytes);
  ASSERT_TRUE(is_ok(a));
  ASSERT_TRUE(is_ok(b));
  (*a)->write(0, bytes.part(0, piece_bytes), 1);
  (*b)->write(0, bytes.part(piece_bytes, piece_bytes), 1);
  under_.tier.reset();
  EXPECT_EQ((*a)->reap(true).size(), 1u);
  EXPECT_EQ((*b)->reap(true).size(), 1u);
  EXPECT_TRUE(is_ok((*a)->seal(piece_bytes)));
  EXPECT_TRUE(is_ok((*b)->seal(piece_bytes)));
}

TEST_P(TierConformance, AWriterMayBeDroppedWithWritesInFlight) {
  AlignedBytes bytes(piece_bytes);
  {
    auto writer = tier().create("job/v1/seg", 0);
    ASSERT_TRUE(is_ok(writer));
    (*writer)->write(0, bytes.all(), 1);
  }
  ASSERT_TRUE(is_ok(tier().remove("job/v1")));
  EXPECT_EQ(list("job"), Names{});
}

TEST_P(TierConformance, CreateReplaces) {
  ASSERT_TRUE(is_ok(write("f", 9, 1, 9 * piece_bytes)));
  ASSERT_TRUE(is_ok(write("f", 4, 2, 4 * piece_bytes)));
  expect_content("f", 4, 2);
}

TEST_P(TierConformance, RemoveTakesANameOrAllBelowIt) {
  for (const std::string name : {"job/v1/seg", "job/v1/commit.local", "job/v2/seg", "job-2/x"}) {
    ASSERT_TRUE(is_ok(tier().put(name, pattern(10, 1)))) << name;
  }
  ASSERT_TRUE(is_ok(tier().remove("job/v1")));
  EXPECT_EQ(list("job"), Names{"v2"});
  EXPECT_TRUE(fails_with(tier().get("job/v1/commit.local", 512), Code::not_found));
  ASSERT_TRUE(is_ok(tier().remove("job/v1"))) << "missing is fine";
  ASSERT_TRUE(is_ok(tier().remove("job")));
  EXPECT_EQ(list(""), Names{"job-2"}) << "a prefix ends at a slash";
  ASSERT_TRUE(is_ok(tier().remove("job-2/x")));
  EXPECT_TRUE(fails_with(tier().get("job-2/x", 512), Code::not_found));
  ASSERT_TRUE(is_ok(tier().remove("no/such/name")));
  ASSERT_TRUE(is_ok(tier().put("job/v1/seg", pattern(10, 2)))) << "a removed name may come back";
  EXPECT_EQ(*tier().get("job/v1/seg", 10), pattern(10, 2));
}

TEST_P(TierConformance, ANameIsNotAPrefixToo) {
  ASSERT_TRUE(is_ok(tier().put("a/b", pattern(10, 1))));
  EXPECT_FALSE(tier().put("a", {}).ok());
  EXPECT_FALSE(tier().put("a/b/c", {}).ok());
  EXPECT_FALSE(tier().create("a/b/c", 0).ok());
  EXPECT_EQ(*tier().get("a/b", 10), pattern(10, 1));
}

// If removed files are recycled, old bytes must not show through.
TEST_P(TierConformance, RoundsOfVersionsOfDifferentSizes) {
  const unsigned pieces[] = {40, 40, 30, 60, 60, 20, 21, 90, 50};
  const std::string job = "job/v";
  for (unsigned i = 0; i < std::size(pieces); ++i) {
    const std::string version = job + std::to_string(i);
    ASSERT_TRUE(is_ok(write(version + "/seg", pieces[i], i, pieces[i] * piece_bytes)));
    ASSERT_TRUE(is_ok(tier().put(version + "/commit.local", pattern(512, i))));
    if (i >= 1) {
      ASSERT_TRUE(is_ok(tier().remove(job + std::to_string(i - 1))));
    }
    EXPECT_EQ(list(version), (Names{"commit.local", "seg"}));
    expect_content(version + "/seg", pieces[i], i);
  }
  EXPECT_EQ(list("job"), Names{"v8"});
  EXPECT_EQ(list(""), Names{"job"});
}

TEST_P(TierConformance, AnOpenReaderKeepsItsBytesWhenTheNameGoes) {
  ASSERT_TRUE(is_ok(write("job/v1/seg", 20, 1, 20 * piece_bytes)));
  auto reader = tier().open("job/v1/seg");
  ASSERT_TRUE(is_ok(reader));
  ASSERT_TRUE(is_ok(tier().remove("job/v1")));
  ASSERT_TRUE(is_ok(write("job/v2/seg", 20, 2, 20 * piece_bytes)));
  AlignedBytes to(20 * piece_bytes);
  ASSERT_TRUE(is_ok(read_one(**reader, 0, to.all())));
  EXPECT_EQ(first_difference(to.all(), 1), to.all().size());
}

}  // namespace backstay::testing
