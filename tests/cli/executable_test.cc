// Real programs of this machine, and files made of their bytes.
#include "bin/parts/executable.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "bin/parts/needed_libraries.h"

namespace backstay::bin {
namespace {

namespace fs = std::filesystem;

class ExecutableTest : public testing::Test {
 protected:
  ExecutableTest() {
    std::string path = (fs::temp_directory_path() / "backstay-executable-XXXXXX").string();
    folder_ = ::mkdtemp(path.data());
  }
  ~ExecutableTest() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& bytes, mode_t mode = 0755) {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    ::chmod(path.c_str(), mode);
    return path;
  }
  // A copy of a dynamic program.
  static std::string true_bytes() {
    std::ifstream file("/bin/true", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
};

std::string why(const std::vector<std::string>& words) {
  const Status status = check_takes_library(words);
  return status.ok() ? "" : status.error().message();
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(ExecutableTest, ResolvesAsExecvpDoes) {
  EXPECT_EQ(*resolve_program("/bin/true"), "/bin/true");
  EXPECT_TRUE(resolve_program("true")->ends_with("/true"));
  EXPECT_EQ(resolve_program("no-such-program").error().code(), Code::not_found);
  EXPECT_EQ(resolve_program("/no/such").error().code(), Code::not_found);
  EXPECT_EQ(resolve_program("").error().code(), Code::not_found);
  EXPECT_EQ(resolve_program(file("plain", "x", 0644)).error().code(), Code::permission);
  EXPECT_TRUE(says(resolve_program(folder_ / ".").error().message(), "is a folder"));
}

TEST_F(ExecutableTest, DynamicProgramsAndScriptsTakeALibrary) {
  EXPECT_EQ(why({"/bin/true"}), "");
  EXPECT_EQ(why({file("script", "#!/bin/sh\nexit 0\n")}), "");
  EXPECT_EQ(why({file("env", "#! /usr/bin/env -S sh -u\n")}), "");
  EXPECT_EQ(why({file("text", "exit 0\n")}), "");  // /bin/sh runs it
}

TEST_F(ExecutableTest, AStaticProgramIsNamed) {
  std::string bytes = true_bytes();
  Elf64_Ehdr header{};
  memcpy(&header, bytes.data(), sizeof header);
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    auto* segment = reinterpret_cast<Elf64_Phdr*>(bytes.data() + header.e_phoff) + i;
    if (segment->p_type == PT_INTERP) segment->p_type = PT_NULL;
  }
  const std::string program = file("static", bytes);
  EXPECT_TRUE(says(why({program}), program + " cannot be captured: it is linked statically"));
  EXPECT_TRUE(says(why({program}), "Link it dynamically"));
  EXPECT_TRUE(
      says(why({file("s", "#!" + program + "\n")}), "is a script: the files of " + program));
  EXPECT_TRUE(says(why({"/usr/bin/env", "A=b", program}), "linked statically"));
  EXPECT_TRUE(says(why({"/usr/bin/nice", "-n", "1", program}), "linked statically"));
}

TEST_F(ExecutableTest, OtherMachinesAndOtherLoadersAreNamed) {
  std::string bytes = true_bytes();
  Elf64_Ehdr header{};
  memcpy(&header, bytes.data(), sizeof header);
  const unsigned own = header.e_machine;
  header.e_machine = own == EM_AARCH64 ? EM_X86_64 : EM_AARCH64;
  std::string other = bytes;
  memcpy(other.data(), &header, sizeof header);
  const std::string program = file("other", other);
  EXPECT_TRUE(says(why({program}), own == EM_AARCH64 ? "is for x86-64" : "is for aarch64"));
  EXPECT_TRUE(says(why_not_executed(program, ENOEXEC), "build it for this one"));
  other = bytes;
  other[EI_CLASS] = ELFCLASS32;
  EXPECT_TRUE(says(why({file("old", other)}), "32 bits"));
  other = bytes;
  other.replace(other.find("/ld-linux"), 9, "/ld-musl-");
  EXPECT_TRUE(says(why({file("musl", other)}), "another C library"));
}

TEST_F(ExecutableTest, RightsOfTheirOwnAreNamed) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  const std::string program = file("user", true_bytes());
  ASSERT_EQ(::chown(program.c_str(), 65534, 65534), 0);
  ::chmod(program.c_str(), 04755);
  EXPECT_TRUE(says(why({program}), "set-user-id"));
  ::chmod(program.c_str(), 02755);
  EXPECT_TRUE(says(why({program}), "set-group-id"));
  ::chmod(program.c_str(), 0755);
  EXPECT_EQ(why({program}), "");
  ASSERT_EQ(::chown(program.c_str(), 0, 0), 0);
  ::chmod(program.c_str(), 04755);  // root gains nothing by it: the loader trusts its variables
  EXPECT_EQ(why({program}), "");
}

TEST_F(ExecutableTest, ScriptsWhoseInterpreterFails) {
  const std::string missing = file("missing", "#!/no/such/python -u\n");
  EXPECT_TRUE(says(why({missing}), "is a script for /no/such/python, which is missing here"));
  EXPECT_TRUE(says(why_not_executed(missing, ENOENT), "/no/such/python"));
  const std::string self = folder_ / "self";
  file("self", "#!" + self + "\n");
  EXPECT_NE(why({self}), "");  // ends
}

TEST_F(ExecutableTest, NamesTheLibrariesThatAProgramNeeds) {
  EXPECT_THAT(needed_libraries("/bin/true"), testing::Contains("libc.so.6"));
  EXPECT_THAT(needed_libraries(file("text", "exit 0\n")), testing::IsEmpty());
  EXPECT_THAT(needed_libraries("/no/such"), testing::IsEmpty());
}

TEST_F(ExecutableTest, AProgramWithTheAddressSanitizerIsNamed) {
  std::string bytes = true_bytes();
  const std::size_t name = bytes.find("libc.so.6");  // in the table of strings of its libraries
  ASSERT_NE(name, std::string::npos);
  bytes.replace(name, 9, "libasan.8");
  EXPECT_TRUE(says(why({file("checked", bytes)}), "address sanitizer (libasan.8)"));
}

TEST_F(ExecutableTest, NoByteOfAHeadIsBelieved) {
  const std::string bytes = true_bytes().substr(0, 1024);
  for (std::size_t size = 0; size < 256; ++size) (void)why({file("cut", bytes.substr(0, size))});
  for (std::size_t at = 0; at < 256; ++at) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(~flipped[at]);
    (void)why({file("flipped", flipped)});
    (void)why_not_executed(file("flipped", flipped), ENOEXEC);
  }
  const std::string whole = true_bytes();
  for (std::size_t at = 0; at < whole.size(); at += 331) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(~flipped[at]);
    (void)needed_libraries(file("flipped", flipped));
  }
}

}  // namespace
}  // namespace backstay::bin
