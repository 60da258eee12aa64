#include "io/faulty.h"

#include <gtest/gtest.h>

#include <bit>

#include "aligned_bytes.h"
#include "expect_status.h"
#include "io/memory.h"

namespace backstay::io {
namespace {

using namespace backstay::testing;

class Faulty : public ::testing::Test {
 protected:
  void plan(Fault fault, std::uint64_t at) {
    faults_ = std::make_shared<Faults>(FaultPlan{fault, at});
    fs_ = make_faulty_filesystem(memory_, faults_);
    ring_ = make_faulty_ring(make_memory_ring({.depth = 4}), faults_);
  }
  std::unique_ptr<File> open(Open how = Open::create) {
    auto file = fs_->open("f", how);
    EXPECT_TRUE(is_ok(file));
    return file.ok() ? std::move(file).value() : nullptr;
  }
  Status ring_write(File& file, Bytes bytes) {
    ring_->write(file, 0, bytes, 5);
    const auto done = ring_->reap(true);
    EXPECT_EQ(done.size(), 1u);
    EXPECT_EQ(done.at(0).tag, 5u);
    return done.at(0).status;
  }
  std::size_t size() { return read_file(memory_, "f", 1 << 20)->size(); }

  MemoryFileSystem memory_;
  std::shared_ptr<Faults> faults_;
  std::unique_ptr<FileSystem> fs_;
  std::unique_ptr<Ring> ring_;
  const Buffer bytes_ = pattern(65'536, 1);
};

TEST_F(Faulty, CountsEveryCall) {
  plan(Fault::none, 0);
  auto file = open();
  ASSERT_TRUE(is_ok(file->write_at(0, bytes_)));
  ASSERT_TRUE(is_ok(ring_write(*file, bytes_)));
  ASSERT_TRUE(is_ok(file->sync()));
  ASSERT_TRUE(is_ok(fs_->rename("f", "g")));
  ASSERT_TRUE(is_ok(fs_->sync_directory("/")));
  EXPECT_EQ(faults_->calls(), 6u);
  EXPECT_TRUE(faults_->chosen().empty());
}

TEST_F(Faulty, OneCallFailsAndTheOthersDoNot) {
  const std::pair<Fault, Code> expected[] = {{Fault::io, Code::io},
                                             {Fault::no_space, Code::no_space},
                                             {Fault::permission, Code::permission}};
  for (const auto& [fault, code] : expected) {
    plan(fault, 2);
    auto file = open();
    EXPECT_TRUE(fails_with(file->write_at(0, bytes_), code));
    EXPECT_EQ(size(), 0u);
    EXPECT_EQ(faults_->chosen(), "write f");
    EXPECT_TRUE(is_ok(file->write_at(0, bytes_)));
    plan(fault, 2);
    file = open();
    EXPECT_TRUE(fails_with(ring_write(*file, bytes_), code));
    EXPECT_EQ(size(), 0u);
    EXPECT_TRUE(is_ok(ring_write(*file, bytes_)));
  }
}

TEST_F(Faulty, TornWritesAreHalfDone) {
  plan(Fault::torn, 2);
  auto file = open();
  EXPECT_TRUE(fails_with(file->write_at(0, bytes_), Code::io));
  EXPECT_EQ(size(), 32'768u);
  plan(Fault::torn, 2);
  file = open();
  EXPECT_TRUE(fails_with(ring_write(*file, bytes_), Code::io));
  EXPECT_EQ(size(), 32'768u);
}

TEST_F(Faulty, ShortTransfersAndInterruptionsSucceed) {
  for (const Fault fault : {Fault::short_transfer, Fault::interrupted}) {
    plan(fault, 2);
    auto file = open();
    EXPECT_TRUE(is_ok(file->write_at(0, bytes_)));
    EXPECT_EQ(*read_file(memory_, "f", 1 << 20), bytes_);
    plan(fault, 2);
    file = open();
    EXPECT_TRUE(is_ok(ring_write(*file, bytes_)));
    EXPECT_EQ(*read_file(memory_, "f", 1 << 20), bytes_);
  }
}

TEST_F(Faulty, AStoppedMachineAnswersNothingAnyMore) {
  plan(Fault::stop, 2);
  auto file = open();
  EXPECT_FALSE(file->write_at(0, bytes_).ok());
  EXPECT_EQ(size(), 0u);
  EXPECT_FALSE(file->sync().ok());
  EXPECT_FALSE(ring_write(*file, bytes_).ok());
  EXPECT_FALSE(fs_->list("/").ok());
  EXPECT_FALSE(fs_->remove("f").ok());
  EXPECT_TRUE(faults_->stopped());
  EXPECT_EQ(size(), 0u);
}

TEST_F(Faulty, OrStopsInTheMiddle) {
  plan(Fault::stop_midway, 2);
  auto file = open();
  EXPECT_FALSE(ring_write(*file, bytes_).ok());
  EXPECT_EQ(size(), 32'768u);
  EXPECT_FALSE(file->sync().ok());
}

unsigned bits_that_differ(Bytes a, Bytes b) {
  unsigned bits = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    bits += static_cast<unsigned>(std::popcount(std::to_integer<unsigned>(a[i] ^ b[i])));
  }
  return bits;
}

TEST_F(Faulty, FlipsOneBitOfARead) {
  ASSERT_TRUE(is_ok(publish_file(memory_, "f", bytes_)));
  Buffer to(bytes_.size());
  plan(Fault::flip, 2);
  EXPECT_TRUE(is_ok(open(Open::read)->read_at(0, to)));
  EXPECT_EQ(bits_that_differ(to, bytes_), 1u);
  plan(Fault::flip, 2);
  auto file = open(Open::read);
  ring_->read(*file, 0, to, 1);
  EXPECT_TRUE(is_ok(ring_->reap(true).at(0).status));
  EXPECT_EQ(bits_that_differ(to, bytes_), 1u);
  EXPECT_EQ(*read_file(memory_, "f", 1 << 20), bytes_) << "the disk itself is unharmed";
}

}  // namespace
}  // namespace backstay::io
