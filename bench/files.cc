// What a program that is captured by libbackstay_files.so waits for, beside a plain write into
// tmpfs and one into a file on the disk. Captured in two ways: `preload` brings files to their
// places when they are closed; `pool` hands them to the collector and the agent (backstay exec).
// `mount` writes through `backstay mount`, `through` so that each write comes to its daemon at
// once; `passthrough` through libfuse's own example, where that is installed. Mounts are left out
// where nothing can be mounted.
//
// Processes write one new file each, all at the same time, in chunks of one size. The time goes
// from open to the end of the last write, of the slowest process; that of close stands beside it.
// The claim is about the first: while the program writes, capturing costs it little more than
// memory. Each file is read back at once, against a copy in memory: one that is not at its place
// yet comes out of memory. `native_sync` and `pool_sync` call fsync before they close. Each file's
// length is checked. The files of a round are removed before the next one.
//
//   bench/files
//   bench/files --mib 64 --repetitions 3 --dir /scratch/bench
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/harness/program.h"
#include "bench/harness/samples.h"

namespace backstay::bench {
namespace {

namespace fs = std::filesystem;

struct Options : CommonOptions {
  Options() : CommonOptions{"build/bench/files", 7} {}
  std::uint64_t mib = 128;
  std::string memory = "/dev/shm";
  std::uint64_t pool_mib = 1024;
  std::string library = BACKSTAY_BENCH_FILES_LIBRARY;
  std::string backstay = BACKSTAY_BENCH_FILES_PROGRAM;
  std::string writer = BACKSTAY_BENCH_FILES_WRITER;
  std::string passthrough;
};

struct Way {
  std::string name;
  std::string folder;
  enum class How { native, preload, pool } how;  // mounts: native
  bool syncs = false;                            // before it closes
};

struct Writer {
  pid_t pid;
  int to;
  int from;
};

std::string read_line(int from) {
  std::string line;
  for (char byte = 0; ::read(from, &byte, 1) == 1 && byte != '\n';) line += byte;
  return line;
}

Writer start(const Options& options, const Way& way, const std::string& file, long chunk) {
  int down[2];
  int up[2];
  if (::pipe2(down, O_CLOEXEC) != 0 || ::pipe2(up, O_CLOEXEC) != 0) die("no pipe");
  const pid_t pid = ::fork();
  if (pid < 0) die("no process");
  if (pid == 0) {
    ::dup2(down[0], STDIN_FILENO);
    ::dup2(up[1], STDOUT_FILENO);
    if (way.how == Way::How::preload) {
      ::setenv("LD_PRELOAD", options.library.c_str(), 1);
      ::setenv("BACKSTAY_CAPTURE", (way.folder + "/*").c_str(), 1);
    }
    const std::string bytes = std::to_string(options.mib << 20);
    const std::string step = std::to_string(chunk);
    const char* sync = way.syncs ? "sync" : nullptr;
    if (way.how == Way::How::pool) {
      const std::string globs = "--capture-files=" + way.folder + "/*";
      ::execl(options.backstay.c_str(), "backstay", "exec", "--job=bench", globs.c_str(), "--",
              options.writer.c_str(), file.c_str(), bytes.c_str(), step.c_str(), sync, nullptr);
    }
    ::execl(options.writer.c_str(), options.writer.c_str(), file.c_str(), bytes.c_str(),
            step.c_str(), sync, nullptr);
    ::_exit(127);
  }
  ::close(down[0]);
  ::close(up[1]);
  if (read_line(up[0]) != "ready") die("the writer could not be started: " + options.writer);
  return {pid, down[1], up[0]};
}

// The times of the slowest process.
struct Times {
  double write_s = 0;
  double sync_s = 0;
  double close_s = 0;
  double open_s = 0;
  double read_s = 0;
  double copy_s = 0;
};

Times finish(const std::vector<Writer>& writers) {
  Times slowest;
  for (const Writer& writer : writers)
    if (::write(writer.to, "g", 1) != 1) die("a writer has ended");
  for (const Writer& writer : writers) {
    Times one;
    const std::string line = read_line(writer.from);
    if (std::sscanf(line.c_str(), "%lf %lf %lf %lf %lf %lf", &one.write_s, &one.sync_s,
                    &one.close_s, &one.open_s, &one.read_s, &one.copy_s) != 6)
      die("a writer has failed");
    for (double Times::*what : {&Times::write_s, &Times::sync_s, &Times::close_s, &Times::open_s,
                                &Times::read_s, &Times::copy_s})
      slowest.*what = std::max(slowest.*what, one.*what);
    ::close(writer.to);
    ::close(writer.from);
    ::waitpid(writer.pid, nullptr, 0);
  }
  return slowest;
}

void measure(const Options& options, const Way& way, int processes, long chunk, Samples& samples) {
  std::vector<Writer> writers;
  std::vector<std::string> files;
  for (int process = 0; process < processes; ++process) {
    files.push_back(way.folder + "/file" + std::to_string(process));
    writers.push_back(start(options, way, files.back(), chunk));
  }
  const Times times = finish(writers);
  const std::string key =
      way.name + "_" + std::to_string(chunk >> 10) + "k_x" + std::to_string(processes);
  samples.add(key + "_s", times.write_s);
  samples.add(key + "_close_s", times.close_s);
  samples.add(key + "_open_s", times.open_s);
  samples.add(key + "_read_s", times.read_s);
  samples.add(key + "_memcpy_s", times.copy_s);
  if (way.syncs) samples.add(key + "_local_s", times.write_s + times.sync_s);
  for (const std::string& file : files) {
    if (fs::file_size(file) != options.mib << 20) die(file + " has the wrong length");
    fs::remove(file);
  }
}

// Runs a program of ours or another, and waits for it. False: it has failed.
bool succeeds(const std::vector<std::string>& words) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(STDERR_FILENO, STDOUT_FILENO);  // our results stand alone there
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = 1;
  return pid > 0 && ::waitpid(pid, &status, 0) == pid && status == 0;
}

// Mounted while this lives.
class Mounts {
 public:
  explicit Mounts(const Options& options) : options_(options) {}
  Mounts(const Mounts&) = delete;
  Mounts& operator=(const Mounts&) = delete;
  ~Mounts() {
    for (const auto& [name, folder] : ours_) succeeds({options_.backstay, "unmount", folder});
    for (const fs::path& folder : others_) succeeds({"fusermount3", "-u", folder});
  }

  // The ways that can be had here.
  std::vector<Way> ways(const fs::path& disk) {
    std::vector<Way> found;
    for (const char* name : {"mount", "through"}) {
      if (!can_mount()) return found;
      const fs::path folder = made(disk / name / "at");
      if (std::string(name) == "through") ::setenv("BACKSTAY_MOUNT_WRITE_THROUGH", "1", 1);
      const bool mounted = succeeds({options_.backstay, "mount", folder, "--over",
                                     made(disk / name / "over"), "--job", "bench"});
      ::unsetenv("BACKSTAY_MOUNT_WRITE_THROUGH");
      if (!mounted) continue;
      ours_.emplace_back(name, folder);
      found.push_back({name, folder, Way::How::native});
    }
    const fs::path folder = made(disk / "peer" / "at");
    const std::string source = "source=" + made(disk / "peer" / "over").string();
    if (!options_.passthrough.empty() &&
        succeeds({options_.passthrough, "-o", source + ",writeback,cache=always", folder})) {
      others_.push_back(folder);
      found.push_back({"passthrough", folder, Way::How::native});
    }
    return found;
  }

 private:
  static bool can_mount() {
    return ::access("/dev/fuse", R_OK | W_OK) == 0 && succeeds({"fusermount3", "--version"});
  }
  static fs::path made(const fs::path& folder) {
    fs::create_directories(folder);
    return folder;
  }

  const Options& options_;
  std::vector<std::pair<std::string, std::string>> ours_;
  std::vector<fs::path> others_;
};

constexpr long chunks[] = {4 << 10, 128 << 10, 1 << 20};
constexpr int process_counts[] = {1, 4};

std::vector<Ratio> ratios(bool with_mount) {
  std::vector<Ratio> all;
  for (const int processes : process_counts) {
    for (const long chunk : chunks) {
      const std::string shape = std::to_string(chunk >> 10) + "k_x" + std::to_string(processes);
      // 0.7 of the speed: the time may be longer by that factor.
      for (const std::string& way : {std::string("preload"), std::string("pool")})
        all.push_back({way + "_over_tmpfs_" + shape, way + "_" + shape + "_s",
                       "tmpfs_" + shape + "_s", 1 / 0.7});
      all.push_back({"read_over_memcpy_" + shape, "pool_" + shape + "_read_s",
                     "pool_" + shape + "_memcpy_s", 1 / 0.5});
      all.push_back({"local_over_native_" + shape, "pool_sync_" + shape + "_local_s",
                     "native_sync_" + shape + "_local_s", 1.15});
      if (with_mount)
        all.push_back({"mount_over_tmpfs_" + shape, "mount_" + shape + "_s",
                       "tmpfs_" + shape + "_s", 1 / 0.3});
    }
  }
  return all;
}

nlohmann::json run(const Options& options) {
  const fs::path disk = fs::absolute(options.dir);
  const fs::path memory = fs::path(options.memory) / ("backstay-bench-" + std::to_string(getpid()));
  fs::create_directories(disk);
  fs::create_directories(memory);
  const fs::path socket = fs::path("/tmp") / ("backstay-bench-" + std::to_string(getpid())) / "s";
  ::setenv("BACKSTAY_AGENT_SOCKET", socket.c_str(), 1);
  ::setenv("BACKSTAY_DIR", (disk / "versions").c_str(), 1);
  ::setenv("BACKSTAY_POOL_SIZE_MIB", std::to_string(options.pool_mib).c_str(), 1);
  std::vector<Way> ways = {{"tmpfs", memory, Way::How::native},
                           {"preload", disk, Way::How::preload},
                           {"pool", disk / "pool", Way::How::pool},
                           {"native", disk, Way::How::native},
                           {"pool_sync", disk / "pool", Way::How::pool, true},
                           {"native_sync", disk, Way::How::native, true}};
  fs::create_directories(disk / "pool");
  auto mounts = std::make_unique<Mounts>(options);
  const auto mounted = mounts->ways(disk);
  ways.insert(ways.end(), mounted.begin(), mounted.end());
  Samples samples;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    std::fprintf(stderr, "files: repetition %d of %d\n", repetition + 1, options.repetitions);
    for (const int processes : process_counts)
      for (const long chunk : chunks)
        for (const Way& way : ways) measure(options, way, processes, chunk, samples);
  }
  fs::remove_all(memory);
  mounts.reset();
  succeeds({options.backstay, "agent", "stop"});
  fs::remove_all(socket.parent_path());
  fs::remove_all(disk / "versions");
  nlohmann::json json = {
      {"benchmark", "files"}, {"mib", options.mib}, {"repetitions", options.repetitions}};
  samples.write_to(json);
  json["ratios"] = compare(samples, ratios(!mounted.empty() && mounted.front().name == "mount"));
  return json;
}

void print_mounts(const nlohmann::json& json, const std::string& shape) {
  for (const char* way : {"mount", "through", "passthrough"}) {
    const std::string key = std::string(way) + "_" + shape;
    if (!json.contains(key + "_s")) continue;
    const double ratio =
        json[key + "_s"].get<double>() / json["tmpfs_" + shape + "_s"].get<double>();
    std::printf("  %-12s %.4f (%.4f)   tmpfs / %s%s: %.2f\n", way, json[key + "_s"].get<double>(),
                json[key + "_close_s"].get<double>(), way, key.starts_with("mount") ? " (0.3)" : "",
                1 / ratio);
  }
}

void print_table(const nlohmann::json& json) {
  std::printf("%llu MiB a process, medians of %d; seconds to write (and to close)\n",
              json["mib"].get<unsigned long long>(), json["repetitions"].get<int>());
  std::printf("%-12s %18s %18s %18s %18s %22s %10s\n", "chunk", "tmpfs", "preload", "pool",
              "native", "tmpfs / preload (0.7)", "/ pool");
  for (const int processes : process_counts) {
    for (const long chunk : chunks) {
      const std::string shape = std::to_string(chunk >> 10) + "k_x" + std::to_string(processes);
      std::printf("%-12s", shape.c_str());
      for (const char* way : {"tmpfs", "preload", "pool", "native"}) {
        const std::string key = std::string(way) + "_" + shape;
        std::printf("   %.4f (%.4f)", json[key + "_s"].get<double>(),
                    json[key + "_close_s"].get<double>());
      }
      for (const char* way : {"preload", "pool"})
        std::printf(
            " %16.2f",
            1 / json["ratios"][std::string(way) + "_over_tmpfs_" + shape]["value"].get<double>());
      std::printf("\n");
      const std::string pool = "pool_" + shape;
      std::printf(
          "  read back: opened after %.4f, %.2f of memcpy (0.5)   local / native fsync: %.2f "
          "(1.15)\n",
          json[pool + "_open_s"].get<double>(),
          1 / json["ratios"]["read_over_memcpy_" + shape]["value"].get<double>(),
          json["ratios"]["local_over_native_" + shape]["value"].get<double>());
      print_mounts(json, shape);
    }
  }
}

}  // namespace
}  // namespace backstay::bench

int main(int argc, char** argv) {
  using namespace backstay::bench;
  Options options;
  const Program program{
      [&](CLI::App& app) {
        app.add_option("--mib", options.mib, "of each process")->check(CLI::Range(1, 65536));
        app.add_option("--memory", options.memory, "a folder in tmpfs");
        app.add_option("--library", options.library, "libbackstay_files.so");
        app.add_option("--passthrough", options.passthrough,
                       "libfuse's example passthrough_ll or passthrough_hp, as a peer");
        app.add_option("--pool-mib", options.pool_mib, "of the agent")->check(CLI::Range(8, 65536));
      },
      [&] { return run(options); }, print_table};
  return run_program("What a captured program waits for while it writes files", options, argc, argv,
                     program);
}
