// An agent of the benchmark's own: own folder, own socket, own pool; ended with the benchmark.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace backstay::bench {

struct AgentOptions {
  std::string program;  // path of backstayd
  std::string folder;   // configuration, socket, log and storage live below
  std::string job;
  std::uint64_t pool_mib = 0;
  std::uint32_t keep = 2;
};

// One agent, started and stopped any number of times over the same storage. Belongs to the parent.
class Agent {
 public:
  // Removes what an earlier benchmark left in the folder.
  explicit Agent(AgentOptions options);
  ~Agent();  // stops
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  void start();  // returns when it listens, with a touched pool
  void stop();   // SIGTERM: it drains first; returns when it has ended
  bool running() const { return pid_ > 0; }

  // For backstay_init.
  std::string config_path() const { return options_.folder + "/backstay.toml"; }
  std::string storage_dir() const { return options_.folder + "/storage"; }
  std::uint64_t pool_bytes() const { return options_.pool_mib << 20; }
  pid_t pid() const { return pid_; }

 private:
  std::string socket_path() const;

  AgentOptions options_;
  std::string short_folder_;  // holds the socket: the path of a socket is limited to 107 bytes
  pid_t pid_ = 0;
};

// Resident bytes of a process (VmRSS: its own memory and the pool that it has mapped); 0 if gone.
std::uint64_t resident_bytes(pid_t pid);

// Seconds of processor time that a process has used; 0 if gone.
double cpu_s(pid_t pid);

// Watches a process from one of its own, 50 times a second, until it is destroyed.
class ResidentPeak {
 public:
  explicit ResidentPeak(pid_t watched);
  ~ResidentPeak();
  ResidentPeak(const ResidentPeak&) = delete;
  ResidentPeak& operator=(const ResidentPeak&) = delete;
  std::uint64_t bytes() const { return shared_->peak; }

 private:
  struct Shared {
    std::atomic<bool> stop = false;
    std::atomic<std::uint64_t> peak = 0;
  };
  Shared* shared_;
  pid_t watcher_;
};

}  // namespace backstay::bench
