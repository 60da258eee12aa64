// The table of memory files: descriptors, openings, files, and what ends with what.
#include "capture/files/table.h"

#include <gtest/gtest.h>

#include <memory>

namespace backstay::files {
namespace {

class TableTest : public testing::Test {
 protected:
  MemoryFile& file(ino_t inode) {
    MemoryFile* added = table_->add_file();
    added->placed.st_ino = inode;
    added->placed.st_dev = 7;
    added->memory_stat.st_ino = inode + 1000;
    added->memory_stat.st_dev = 1;
    return *added;
  }

  std::unique_ptr<Table> table_ = std::make_unique<Table>();
};

TEST_F(TableTest, FindsByDescriptorAndByInode) {
  EXPECT_TRUE(table_->empty());
  EXPECT_EQ(table_->find(3), nullptr);
  MemoryFile& one = file(50);
  Opening* opening = table_->add_opening(one, 100, 0);
  table_->bind(3, *opening);
  EXPECT_FALSE(table_->empty());
  EXPECT_EQ(table_->find(3), opening);
  EXPECT_EQ(table_->find(4), nullptr);
  EXPECT_EQ(table_->find(-1), nullptr);
  EXPECT_EQ(table_->find(descriptors_max), nullptr);
  EXPECT_EQ(table_->at_inode(7, 50), &one);
  EXPECT_EQ(table_->at_inode(1, 1050), &one);
  EXPECT_EQ(table_->at_inode(7, 51), nullptr);
}

TEST_F(TableTest, AnOpeningEndsWithItsLastDescriptor) {
  Opening* opening = table_->add_opening(file(50), 100, 0);
  table_->bind(3, *opening);
  table_->bind(9, *opening);
  EXPECT_EQ(table_->end(3).opening, nullptr);
  table_->unbind(3);
  EXPECT_EQ(table_->end(9).opening, opening);
  EXPECT_EQ(table_->end(9).file, opening->file);
  table_->unbind(9);
  table_->remove(*opening);
  EXPECT_TRUE(table_->empty());
  EXPECT_EQ(table_->at_inode(7, 50), nullptr);
}

TEST_F(TableTest, AFileEndsWithItsLastOpening) {
  MemoryFile& one = file(50);
  Opening* first = table_->add_opening(one, 100, 0);
  Opening* second = table_->add_opening(one, 101, 0);
  table_->bind(3, *first);
  table_->bind(4, *second);
  EXPECT_EQ(table_->end(3).opening, first);
  EXPECT_EQ(table_->end(3).file, nullptr);
  table_->unbind(3);
  table_->remove(*first);
  EXPECT_EQ(table_->end(4).file, &one);
}

TEST_F(TableTest, WalksOverAll) {
  MemoryFile& one = file(50);
  Opening* first = table_->add_opening(one, 100, 0);
  MemoryFile& two = file(60);
  Opening* second = table_->add_opening(two, 101, 0);
  Opening* third = table_->add_opening(one, 102, 0);
  table_->bind(5, *third);
  table_->bind(8, *third);
  EXPECT_EQ(table_->first_file(), &one);
  EXPECT_EQ(table_->next_file(one), &two);
  EXPECT_EQ(table_->next_file(two), nullptr);
  EXPECT_EQ(table_->next_opening(one), first);
  EXPECT_EQ(table_->next_opening(one, first), third);
  EXPECT_EQ(table_->next_opening(one, third), nullptr);
  EXPECT_EQ(table_->next_opening(two), second);
  EXPECT_EQ(table_->next_descriptor(*third, 0), 5);
  EXPECT_EQ(table_->next_descriptor(*third, 6), 8);
  EXPECT_EQ(table_->next_descriptor(*third, 9), -1);
}

TEST_F(TableTest, AFreeEntryIsUsedAgain) {
  Opening* opening = table_->add_opening(file(50), 100, 0);
  MemoryFile* first = opening->file;
  table_->remove(*opening);
  EXPECT_EQ(table_->first_file(), nullptr);
  EXPECT_EQ(table_->add_file(), first);
}

TEST_F(TableTest, HasRoomForSoManyAndNoMore) {
  for (int number = 0; number < openings_max; ++number) {
    MemoryFile* added = table_->add_file();
    ASSERT_NE(added, nullptr);
    ASSERT_NE(table_->add_opening(*added, 1, 0), nullptr);
  }
  EXPECT_EQ(table_->add_file(), nullptr);
  EXPECT_EQ(table_->add_opening(*table_->first_file(), 1, 0), nullptr);
}

TEST_F(TableTest, KnowsWhichDescriptorsAreOurs) {
  table_->set_ours(700, true);
  table_->set_ours(701, true);
  table_->set_ours(700, false);
  EXPECT_FALSE(table_->is_ours(700));
  EXPECT_TRUE(table_->is_ours(701));
  EXPECT_FALSE(table_->is_ours(-1));
  EXPECT_FALSE(table_->is_ours(descriptors_max));
}

TEST_F(TableTest, ForgetsAll) {
  Opening* opening = table_->add_opening(file(50), 100, 0);
  table_->bind(3, *opening);
  table_->set_ours(700, true);
  table_->clear();
  EXPECT_TRUE(table_->empty());
  EXPECT_EQ(table_->find(3), nullptr);
  EXPECT_FALSE(table_->is_ours(700));
  EXPECT_EQ(table_->first_file(), nullptr);
}

}  // namespace
}  // namespace backstay::files
