// A folder, a configuration and a socket path for one test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fake_agent.h"

namespace backstay::client::test {

class World {
 public:
  explicit World(const std::string& more = "") {
    char name[] = "/tmp/backstay-client-XXXXXX";
    folder_ = ::mkdtemp(name);
    // No agent program: a session that finds no agent fails at once instead of starting a real one.
    std::ofstream(config()) << "[job]\nname = \"test\"\n[storage]\ndir = \"" << folder_
                            << "/store\"\n[agent]\nsocket = \"" << socket()
                            << "\"\nprogram = \"/nonexistent/backstayd\"\nstart_timeout_s = 10\n"
                            << more;
  }
  ~World() { std::filesystem::remove_all(folder_); }

  std::string folder() const { return folder_; }
  std::string config() const { return folder_ + "/backstay.toml"; }
  std::string socket() const { return folder_ + "/agent.sock"; }
  std::string files() const { return folder_ + "/store/test/files"; }

 private:
  std::string folder_;
};

// Bytes that differ everywhere and between seeds.
inline std::vector<unsigned char> pattern(std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<unsigned char> out(bytes);
  for (auto& byte : out) byte = static_cast<unsigned char>(random());
  return out;
}

// New content at the same address: what is protected must not move.
inline void refill(std::vector<unsigned char>& data, unsigned seed) {
  const auto fresh = pattern(data.size(), seed);
  std::copy(fresh.begin(), fresh.end(), data.begin());
}

}  // namespace backstay::client::test
