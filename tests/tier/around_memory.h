// A file system in memory whose calls a test can change one by one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/memory.h"

namespace backstay::testing {

class AroundMemory : public io::FileSystem {
 public:
  Result<std::unique_ptr<io::File>> open(const std::string& path, io::Open how) override {
    return inner.open(path, how);
  }
  Status make_directories(const std::string& path) override { return inner.make_directories(path); }
  Status rename(const std::string& from, const std::string& to) override {
    return inner.rename(from, to);
  }
  Status remove(const std::string& path) override { return inner.remove(path); }
  Result<io::Facts> look(const std::string& path) override { return inner.look(path); }
  Result<std::vector<io::Entry>> list(const std::string& path) override { return inner.list(path); }
  Status sync_directory(const std::string& path) override { return inner.sync_directory(path); }

  io::MemoryFileSystem inner;
};

}  // namespace backstay::testing
