// A file system and a place in it, for the suites of everything that is built on one.
#pragma once

#include <memory>
#include <string>

#include "io/memory.h"
#include "io/posix.h"
#include "temp_directory.h"

namespace backstay::testing {

struct FileSystemUnderTest {
  io::FileSystem* fs = nullptr;
  std::string root;            // an existing, empty folder
  std::shared_ptr<void> keep;  // whatever the two need
};

inline FileSystemUnderTest posix_files() {
  auto directory = std::make_shared<TempDirectory>();
  return {&io::posix_filesystem(), directory->path(), directory};
}

inline FileSystemUnderTest memory_files(io::MemoryOptions options = {}) {
  auto fs = std::make_shared<io::MemoryFileSystem>(options);
  return {fs.get(), "", fs};
}

}  // namespace backstay::testing
