#include "io/transfer.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "expect_status.h"

namespace backstay::io {
namespace {

using backstay::testing::fails_with;

Transfer reading(std::uint64_t size) { return {Direction::read, false, 1000, size}; }
Transfer writing(std::uint64_t size) { return {Direction::write, false, 1000, size}; }

TEST(Transfer, ShortAnswersAreContinuedWhereTheyStopped) {
  Transfer transfer = writing(100);
  EXPECT_FALSE(*advance(transfer, 30));
  EXPECT_EQ(transfer.at(), 1030u);
  EXPECT_EQ(transfer.next_bytes(), 70u);
  EXPECT_TRUE(*advance(transfer, 70));
}

TEST(Transfer, AnInterruptionChangesNothing) {
  Transfer transfer = reading(100);
  for (const int temporary : {EINTR, EAGAIN}) {
    EXPECT_FALSE(*advance(transfer, -temporary));
    EXPECT_EQ(transfer.at(), 1000u);
  }
  EXPECT_TRUE(*advance(transfer, 100));
}

TEST(Transfer, ACallThatIsRefusedForEverIsGivenUp) {
  Transfer transfer = reading(100);
  int calls = 0;
  auto answer = advance(transfer, -EAGAIN);
  while (answer.ok() && ++calls < 100'000) answer = advance(transfer, -EAGAIN);
  EXPECT_TRUE(fails_with(answer, Code::again));
  EXPECT_TRUE(transfer.should_pause());
}

TEST(Transfer, ProgressForgetsEarlierRefusals) {
  Transfer transfer = writing(100'000);
  for (int i = 0; i < 5'000; ++i) {
    ASSERT_TRUE(advance(transfer, -EINTR).ok());
    ASSERT_TRUE(advance(transfer, 1).ok());
  }
  EXPECT_FALSE(transfer.should_pause());
}

TEST(Transfer, TheEndOfTheFileIsCorrupt) {
  Transfer transfer = reading(100);
  EXPECT_FALSE(*advance(transfer, 99));
  const auto end = advance(transfer, 0);
  EXPECT_TRUE(fails_with(end, Code::corrupt));
  EXPECT_NE(end.error().message().find("1099"), std::string::npos) << end.error().message();
}

TEST(Transfer, AWriteOfNothingIsAnError) {
  Transfer transfer = writing(100);
  EXPECT_TRUE(fails_with(advance(transfer, 0), Code::io));
}

TEST(Transfer, ADirectReadThatStopsInABlockHasMetTheEnd) {
  Transfer transfer{Direction::read, true, 0, 8192};
  EXPECT_TRUE(fails_with(advance(transfer, 4097), Code::corrupt));
  Transfer whole{Direction::read, true, 0, 8192};
  EXPECT_FALSE(*advance(whole, 4096));
}

TEST(Transfer, ErrorsKeepTheirErrno) {
  Transfer transfer = writing(100);
  const auto full = advance(transfer, -ENOSPC);
  EXPECT_TRUE(fails_with(full, Code::no_space));
  EXPECT_EQ(full.error().sys_errno(), ENOSPC);
}

TEST(Transfer, OneCallIsAtMostOneGibibyte) {
  Transfer transfer = writing(std::uint64_t{3} << 30);
  EXPECT_EQ(transfer.next_bytes(), 1u << 30);
  EXPECT_FALSE(*advance(transfer, 1 << 30));
  EXPECT_EQ(transfer.next_bytes() % 4096, 0u);
}

}  // namespace
}  // namespace backstay::io
