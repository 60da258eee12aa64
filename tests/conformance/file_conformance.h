// What every FileSystem does. Include it, then INSTANTIATE_TEST_SUITE_P(name, FileConformance,
// ...).
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "aligned_bytes.h"
#include "expect_status.h"
#include "file_system_under_test.h"
#include "io/file.h"

namespace backstay::testing {

struct FileCase {
  std::string name;
  std::function<FileSystemUnderTest()> make;
};

inline std::string case_name(const ::testing::TestParamInfo<FileCase>& info) {
  return info.param.name;
}

class FileConformance : public ::testing::TestWithParam<FileCase> {
 protected:
  FileConformance() : under_(GetParam().make()), fs_(*under_.fs) {}
  std::string at(const std::string& name) const { return under_.root + "/" + name; }

  void write(const std::string& name, Bytes content) {
    auto file = fs_.open(at(name), io::Open::create);
    ASSERT_TRUE(is_ok(file));
    ASSERT_TRUE(is_ok((*file)->write_at(0, content)));
  }
  Buffer content(const std::string& name) {
    auto bytes = io::read_file(fs_, at(name), 1 << 24);
    EXPECT_TRUE(is_ok(bytes)) << name;
    return bytes.ok() ? std::move(bytes).value() : Buffer{};
  }

  FileSystemUnderTest under_;
  io::FileSystem& fs_;
};

TEST_P(FileConformance, WhatWasWrittenIsRead) {
  const Buffer bytes = pattern(100'003, 1);
  write("f", bytes);
  EXPECT_EQ(content("f"), bytes);
}

TEST_P(FileConformance, WritesAtOffsetsLeaveZerosBetween) {
  auto file = fs_.open(at("f"), io::Open::create);
  ASSERT_TRUE(is_ok(file));
  ASSERT_TRUE(is_ok((*file)->write_at(10, pattern(5, 1))));
  ASSERT_TRUE(is_ok((*file)->write_at(2, pattern(3, 2))));
  EXPECT_EQ(*(*file)->size(), 15u);
  Buffer back(15);
  ASSERT_TRUE(is_ok((*file)->read_at(0, back)));
  EXPECT_EQ(back[0], std::byte{0});
  EXPECT_EQ(first_difference(Bytes(back).subspan(2, 3), 2), 3u);
  EXPECT_EQ(back[5], std::byte{0});
  EXPECT_EQ(first_difference(Bytes(back).subspan(10), 1), 5u);
}

TEST_P(FileConformance, ReadingPastTheEndIsCorrupt) {
  write("f", pattern(100, 1));
  auto file = fs_.open(at("f"), io::Open::read);
  ASSERT_TRUE(is_ok(file));
  Buffer to(100);
  EXPECT_TRUE(is_ok((*file)->read_at(0, to)));
  EXPECT_TRUE(fails_with((*file)->read_at(1, to), Code::corrupt));
  EXPECT_TRUE(fails_with((*file)->read_at(1'000, to), Code::corrupt));
  EXPECT_TRUE(is_ok((*file)->read_at(100, {})));
}

TEST_P(FileConformance, MissingFilesAreNotFound) {
  EXPECT_TRUE(fails_with(fs_.open(at("f"), io::Open::read), Code::not_found));
  EXPECT_TRUE(fails_with(fs_.open(at("f"), io::Open::read_direct), Code::not_found));
  EXPECT_TRUE(fails_with(fs_.open(at("no/f"), io::Open::create), Code::not_found));
  EXPECT_TRUE(fails_with(fs_.remove(at("f")), Code::not_found));
  EXPECT_TRUE(fails_with(fs_.rename(at("f"), at("g")), Code::not_found));
  EXPECT_TRUE(fails_with(fs_.list(at("no")), Code::not_found));
  EXPECT_TRUE(fails_with(fs_.sync_directory(at("no")), Code::not_found));
}

TEST_P(FileConformance, CreateEmptiesAndReuseKeeps) {
  write("f", pattern(8192, 1));
  {
    auto file = fs_.open(at("f"), io::Open::reuse_direct);
    ASSERT_TRUE(is_ok(file));
    EXPECT_EQ(*(*file)->size(), 8192u);
    AlignedBytes block(4096);
    fill_pattern(block.all(), 2);
    ASSERT_TRUE(is_ok((*file)->write_at(4096, block.all())));
  }
  const Buffer bytes = content("f");
  EXPECT_EQ(first_difference(Bytes(bytes).first(4096), 1), 4096u);
  EXPECT_EQ(first_difference(Bytes(bytes).subspan(4096), 2), 4096u);
  ASSERT_TRUE(is_ok(fs_.open(at("f"), io::Open::create_direct)));
  EXPECT_TRUE(content("f").empty());
  ASSERT_TRUE(is_ok(fs_.open(at("new"), io::Open::reuse_direct)));
}

TEST_P(FileConformance, DirectFilesTakeAlignedBlocks) {
  AlignedBytes blocks(1 << 16);
  fill_pattern(blocks.all(), 3);
  auto out = fs_.open(at("f"), io::Open::create_direct);
  ASSERT_TRUE(is_ok(out));
  ASSERT_TRUE(is_ok((*out)->write_at(4096, blocks.all())));
  ASSERT_TRUE(is_ok((*out)->sync()));
  auto in = fs_.open(at("f"), io::Open::read_direct);
  ASSERT_TRUE(is_ok(in));
  AlignedBytes back(1 << 16);
  ASSERT_TRUE(is_ok((*in)->read_at(4096, back.all())));
  EXPECT_EQ(first_difference(back.all(), 3), back.all().size());
  EXPECT_TRUE(fails_with((*in)->read_at(8192, back.all()), Code::corrupt));
}

TEST_P(FileConformance, AFileOpenedForReadingIsNotWritten) {
  write("f", pattern(10, 1));
  auto file = fs_.open(at("f"), io::Open::read);
  ASSERT_TRUE(is_ok(file));
  EXPECT_FALSE((*file)->write_at(0, pattern(1, 2)).ok());
  EXPECT_EQ(content("f"), pattern(10, 1));
}

TEST_P(FileConformance, AllocateNeverShrinksAndTruncateDoes) {
  auto file = fs_.open(at("f"), io::Open::create);
  ASSERT_TRUE(is_ok(file));
  ASSERT_TRUE(is_ok((*file)->write_at(0, pattern(10'000, 1))));
  ASSERT_TRUE(is_ok((*file)->allocate(0)));
  ASSERT_TRUE(is_ok((*file)->allocate(100)));
  EXPECT_EQ(*(*file)->size(), 10'000u);
  ASSERT_TRUE(is_ok((*file)->allocate(20'000)));
  ASSERT_TRUE(is_ok((*file)->truncate(5'000)));
  EXPECT_EQ(content("f"), pattern(5'000, 1));
  ASSERT_TRUE(is_ok((*file)->truncate(5'001)));
  EXPECT_EQ(content("f").back(), std::byte{0});
}

TEST_P(FileConformance, RenameReplacesAFile) {
  write("old", pattern(10, 1));
  write("new", pattern(20, 2));
  ASSERT_TRUE(is_ok(fs_.rename(at("new"), at("old"))));
  EXPECT_EQ(content("old"), pattern(20, 2));
  EXPECT_TRUE(fails_with(fs_.open(at("new"), io::Open::read), Code::not_found));
}

TEST_P(FileConformance, RenameMovesBetweenFolders) {
  ASSERT_TRUE(is_ok(fs_.make_directories(at("a"))));
  ASSERT_TRUE(is_ok(fs_.make_directories(at("b"))));
  write("a/f", pattern(10, 1));
  ASSERT_TRUE(is_ok(fs_.rename(at("a/f"), at("b/g"))));
  EXPECT_EQ(content("b/g"), pattern(10, 1));
  EXPECT_TRUE(fs_.list(at("a"))->empty());
  EXPECT_FALSE(fs_.rename(at("b/g"), at("a")).ok()) << "a folder was replaced by a file";
}

TEST_P(FileConformance, AttributesAreThoseThatWereSet) {
  const io::Attributes set{.mode = 0640, .accessed = {17, 1}, .modified = {-5, 999'999'999}};
  auto file = fs_.open(at("f"), io::Open::create);
  ASSERT_TRUE(is_ok(file));
  ASSERT_TRUE(is_ok((*file)->write_at(0, pattern(10, 1))));
  ASSERT_TRUE(is_ok((*file)->set_attributes(set)));
  ASSERT_TRUE(is_ok((*file)->sync()));
  file->reset();
  ASSERT_TRUE(is_ok(fs_.rename(at("f"), at("g"))));
  const auto facts = fs_.look(at("g"));
  ASSERT_TRUE(is_ok(facts));
  EXPECT_TRUE(facts->file);
  EXPECT_EQ(facts->bytes, 10U);
  EXPECT_EQ(facts->attributes, set);
}

TEST_P(FileConformance, ALookTellsFilesApart) {
  write("f", {});
  write("g", {});
  ASSERT_TRUE(is_ok(fs_.make_directories(at("folder"))));
  const auto f = fs_.look(at("f")), g = fs_.look(at("g")), folder = fs_.look(at("folder"));
  ASSERT_TRUE(is_ok(f) && is_ok(g) && is_ok(folder));
  EXPECT_TRUE(f->file && !f->folder && !folder->file && folder->folder);
  EXPECT_EQ(f->attributes.mode, 0600U);
  EXPECT_NE(f->inode, g->inode);
  ASSERT_TRUE(is_ok(fs_.rename(at("f"), at("g"))));
  EXPECT_EQ(fs_.look(at("g"))->inode, f->inode);
  EXPECT_TRUE(fails_with(fs_.look(at("f")), Code::not_found));
}

TEST_P(FileConformance, FoldersAreMadeListedAndRemoved) {
  ASSERT_TRUE(is_ok(fs_.make_directories(at("a/b/c"))));
  ASSERT_TRUE(is_ok(fs_.make_directories(at("a/b/c"))));
  write("a/z", {});
  write("a/a", {});
  const auto entries = fs_.list(at("a"));
  ASSERT_TRUE(is_ok(entries));
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[0].name, "a");
  EXPECT_EQ((*entries)[1].name, "b");
  EXPECT_TRUE((*entries)[1].directory);
  EXPECT_EQ((*entries)[2].name, "z");
  EXPECT_FALSE((*entries)[2].directory);
  EXPECT_FALSE(fs_.remove(at("a/b")).ok()) << "a folder that is not empty was removed";
  ASSERT_TRUE(is_ok(fs_.remove(at("a/b/c"))));
  ASSERT_TRUE(is_ok(fs_.remove(at("a/b"))));
  ASSERT_TRUE(is_ok(fs_.sync_directory(at("a"))));
}

TEST_P(FileConformance, AFileIsNotAFolder) {
  write("f", pattern(1, 1));
  EXPECT_TRUE(fails_with(fs_.make_directories(at("f")), Code::io));
  EXPECT_TRUE(fails_with(fs_.make_directories(at("f/g")), Code::io));
  EXPECT_TRUE(fails_with(fs_.list(at("f")), Code::io));
  EXPECT_TRUE(fails_with(fs_.open(at("f/g"), io::Open::create), Code::io));
  ASSERT_TRUE(is_ok(fs_.make_directories(at("d"))));
  EXPECT_FALSE(fs_.open(at("d"), io::Open::create).ok());
}

TEST_P(FileConformance, ARemovedFileStaysReadableWhileItIsOpen) {
  write("f", pattern(10, 1));
  auto file = fs_.open(at("f"), io::Open::read);
  ASSERT_TRUE(is_ok(file));
  ASSERT_TRUE(is_ok(fs_.remove(at("f"))));
  write("f", pattern(10, 2));
  Buffer back(10);
  ASSERT_TRUE(is_ok((*file)->read_at(0, back)));
  EXPECT_EQ(back, pattern(10, 1));
}

TEST_P(FileConformance, ReadFileRefusesMoreThanItsLimit) {
  write("f", pattern(100, 1));
  EXPECT_TRUE(is_ok(io::read_file(fs_, at("f"), 100)));
  EXPECT_TRUE(fails_with(io::read_file(fs_, at("f"), 99), Code::too_large));
  EXPECT_TRUE(fails_with(io::read_file(fs_, at("g"), 99), Code::not_found));
}

TEST_P(FileConformance, PublishReplacesAndLeavesNothingElse) {
  ASSERT_TRUE(is_ok(io::publish_file(fs_, at("f"), pattern(100, 1))));
  ASSERT_TRUE(is_ok(io::publish_file(fs_, at("f"), pattern(10, 2))));
  EXPECT_EQ(content("f"), pattern(10, 2));
  EXPECT_EQ(fs_.list(under_.root)->size(), 1u);
  EXPECT_TRUE(fails_with(io::publish_file(fs_, at("no/f"), {}), Code::not_found));
}

TEST_P(FileConformance, RemoveTreeTakesEverything) {
  ASSERT_TRUE(is_ok(fs_.make_directories(at("a/b/c"))));
  write("a/f", {});
  write("a/b/c/f", {});
  write("keep", {});
  ASSERT_TRUE(is_ok(io::remove_tree(fs_, at("a"))));
  ASSERT_TRUE(is_ok(io::remove_tree(fs_, at("a")))) << "missing is fine";
  ASSERT_EQ(fs_.list(under_.root)->size(), 1u);
  EXPECT_EQ(fs_.list(under_.root)->front().name, "keep");
}

}  // namespace backstay::testing
