// Replay of the write profile of paper 003 in these ways (docs/benchmarks.md):
//
//   direct      one file a process, one write() a piece, fsync          (BLCR as it was)
//   aggregate   pieces below 256 KiB gathered in a buffer a process     (the paper's basic WAG)
//   pool        the pieces as protected regions through the agent, whose pool holds one version
//   pool_paper  the same with 8 MiB of pool a process, as in the paper (64 MB for 8 processes)
//   preload     one file a process, one write() a piece, by programs under `backstay exec`
//   mount       the same in a folder that `backstay mount` has mounted, where that can be done
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/fd.h"
#include "bench/harness/agent.h"
#include "bench/harness/captured.h"
#include "bench/harness/disk.h"
#include "bench/harness/program.h"
#include "bench/harness/samples.h"
#include "bench/harness/writer.h"

namespace backstay::bench {
namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

struct Options : CommonOptions {
  Options() : CommonOptions{"build/bench/write_pattern", 3} {}
  int processes = 64;
  unsigned shrink = 1;
  std::uint64_t seed = 3;
  std::vector<std::string> ways = {"direct", "aggregate", "pool", "pool_paper", "preload", "mount"};
  std::uint64_t pool_mib = 0;  // 0: one version
  std::uint64_t threshold_kib = aggregation_threshold >> 10;
  int checkpoints = 0;  // of a run; 0: none is measured
  int work = 20;
  std::string backstay = BACKSTAY_BENCH_FILES_PROGRAM;
  std::string writer = BACKSTAY_BENCH_PATTERN_WRITER;
};

constexpr double target_over_pool = 1.25;

struct Way {
  Samples samples;
  std::uint64_t memory_bytes = 0;
};

void sync_disk(const std::string& dir) {
  const Fd folder(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) syncfs(folder.get());
}

// All processes save once; everything until the data is on the disk counts.
Outcome measure(Way& way, Workers& workers, int command, std::uint64_t argument,
                const std::string& dir) {
  sync_disk(dir);
  const std::int64_t before = device_writes(dir);
  const Outcome outcome = workers.command(command, argument);
  const std::int64_t after = device_writes(dir);
  way.samples.add("blocked_s", outcome.slowest_s);
  way.samples.add("on_disk_s",
                  static_cast<double>(outcome.last_later_ns - outcome.first_start_ns) / 1e9);
  way.samples.add("write_requests", before < 0 ? -1.0 : static_cast<double>(after - before));
  return outcome;
}

struct Totals {
  std::uint64_t bytes = 0;
  std::uint64_t pieces = 0;
};

class Replay {
 public:
  explicit Replay(const Options& options) : options_(options) {
    std::filesystem::create_directories(files_dir());
  }
  ~Replay() {
    std::error_code ignored;
    std::filesystem::remove_all(files_dir(), ignored);
  }

  nlohmann::json run() {
    const std::uint64_t processes = static_cast<std::uint64_t>(options_.processes);
    const std::uint64_t all_mib =
        options_.pool_mib > 0 ? options_.pool_mib : processes * (44 / options_.shrink + 8);
    with_agent("pool", all_mib, true);
    if (wants("pool_paper")) with_agent("pool_paper", processes * 8, false);
    if (wants("preload")) captured("preload", all_mib);
    if (wants("mount")) {
      if (const std::string why = cannot_mount(); !why.empty()) {
        std::fprintf(stderr, "write_pattern: without the way mount: %s\n", why.c_str());
      } else {
        captured("mount", all_mib);
      }
    }
    return to_json();
  }

 private:
  bool wants(const std::string& way) const {
    return std::ranges::find(options_.ways, way) != options_.ways.end();
  }

  AgentOptions agent_for(const std::string& name, std::uint64_t pool_mib) const {
    AgentOptions agent_options;
    agent_options.program = options_.agent;
    agent_options.folder = std::filesystem::absolute(options_.dir) / name;
    agent_options.job = "bench-" + name;
    agent_options.pool_mib = pool_mib;
    return agent_options;
  }

  void captured(const std::string& name, std::uint64_t pool_mib) {
    Agent agent(agent_for(name, pool_mib));
    agent.start();
    Way& way = ways_[name];
    way.memory_bytes = agent.pool_bytes();
    CapturedPattern pattern({options_.backstay, options_.writer, agent.config_path(),
                             std::filesystem::absolute(files_dir()), options_.processes,
                             options_.seed, options_.shrink, options_.checkpoints, options_.work},
                            name == "mount");
    Samples unmeasured;  // the first one, as of the pool
    pattern.measure(unmeasured);
    for (int i = 1; i <= options_.repetitions; ++i) {
      std::fprintf(stderr, "write_pattern: %s, repetition %d of %d\n", name.c_str(), i,
                   options_.repetitions);
      sync_disk(options_.dir);
      const std::int64_t before = device_writes(options_.dir);
      pattern.measure(way.samples);
      const std::int64_t after = device_writes(options_.dir);
      way.samples.add("write_requests", before < 0 ? -1.0 : static_cast<double>(after - before));
      if (options_.checkpoints > 0) pattern.measure_run(way.samples);
    }
  }

  void with_agent(const std::string& name, std::uint64_t pool_mib, bool others_too) {
    Agent agent(agent_for(name, pool_mib));
    agent.start();
    WriterPlace place{files_dir(), agent.config_path(), options_.seed, options_.shrink};
    Workers workers(options_.processes, make_writer(place));
    totals_.bytes = workers.command(piece_fill, 0).value_sum;
    totals_.pieces = workers.command(piece_count).value_sum;
    workers.command(pool_join);
    workers.command(write_pool);  // the first one of a session is not measured
    for (int i = 1; i <= options_.repetitions; ++i) {
      std::fprintf(stderr, "write_pattern: %s, repetition %d of %d\n", name.c_str(), i,
                   options_.repetitions);
      repeat(name, workers, static_cast<std::uint64_t>(i), others_too);
    }
    if (wants(name)) ways_[name].memory_bytes = agent.pool_bytes();
    workers.command(pool_leave);
  }

  void repeat(const std::string& name, Workers& workers, std::uint64_t seed, bool others_too) {
    workers.command(piece_fill, seed);
    if (others_too && wants("direct")) {
      measure(ways_["direct"], workers, write_direct, 0, options_.dir);
      measure_run(ways_["direct"], workers, write_direct, 0);
    }
    if (others_too && wants("aggregate")) {
      Way& aggregate = ways_["aggregate"];
      const std::uint64_t threshold = options_.threshold_kib << 10;
      aggregate.memory_bytes =
          measure(aggregate, workers, write_aggregate, threshold, options_.dir).value_sum;
      measure_run(aggregate, workers, write_aggregate, threshold);
    }
    if (!wants(name)) return;
    workers.command(piece_fill, seed);
    measure(ways_[name], workers, write_pool, 0, options_.dir);
    workers.command(pool_restart, seed);
    workers.command(piece_verify, seed);
    measure_run(ways_[name], workers, pool_save, 0);
  }

  // A program that saves several times.
  void measure_run(Way& way, Workers& workers, int command, std::uint64_t argument) const {
    if (options_.checkpoints == 0) return;
    sync_disk(options_.dir);
    const std::int64_t began_ns = now_ns();
    Outcome last;
    for (int i = 0; i < options_.checkpoints; ++i) {
      workers.command(piece_work, static_cast<std::uint64_t>(options_.work));
      last = workers.command(command, argument);
    }
    way.samples.add("program_s", 1e-9 * static_cast<double>(last.last_end_ns - began_ns));
    if (command == pool_save) last = workers.command(pool_wait);
    way.samples.add("run_s", 1e-9 * static_cast<double>(last.last_later_ns - began_ns));
  }

  nlohmann::json to_json() const {
    nlohmann::json json = {{"benchmark", "write_pattern"},
                           {"processes", options_.processes},
                           {"repetitions", options_.repetitions},
                           {"bytes", totals_.bytes},
                           {"writes", totals_.pieces},
                           {"seed", options_.seed},
                           {"requests_from", "/proc/diskstats, all writers of the device"}};
    const auto direct = ways_.find("direct");
    for (const auto& [name, way] : ways_) {
      nlohmann::json& entry = json["ways"][name];
      way.samples.write_to(entry);
      if (direct != ways_.end()) {
        entry["speedup"] =
            direct->second.samples.median_of("blocked_s") / way.samples.median_of("blocked_s");
      }
      entry["memory_bytes"] = way.memory_bytes;
    }
    json["ratios"] = ratios();
    return json;
  }

  nlohmann::json ratios() const {
    Samples blocked;
    std::vector<Ratio> claims;
    if (!ways_.contains("pool")) return nlohmann::json::object();
    for (const auto& [name, way] : ways_) {
      for (const double one : way.samples.of("blocked_s")) blocked.add(name, one);
      if (name == "preload" || name == "mount")
        claims.push_back({name + "_over_pool", name, "pool", target_over_pool});
    }
    return compare(blocked, claims);
  }

  std::string files_dir() const { return options_.dir + "/files"; }

  Options options_;
  Totals totals_;
  std::map<std::string, Way> ways_;
};

void print_table(const nlohmann::json& json) {
  std::printf("%d processes, %.0f writes, %.0f MiB, medians of %d\n", json["processes"].get<int>(),
              json["writes"].get<double>(), json["bytes"].get<double>() / mebibyte,
              json["repetitions"].get<int>());
  std::printf("%-12s %10s %10s %9s %12s %15s\n", "way", "blocked s", "on disk s", "speed-up",
              "memory MiB", "write requests");
  for (const auto& [name, way] : json["ways"].items()) {
    std::printf("%-12s %10.3f %10.3f %9.1f %12.0f %15.0f\n", name.c_str(),
                way["blocked_s"].get<double>(), way["on_disk_s"].get<double>(),
                way.value("speedup", 0.0), way["memory_bytes"].get<double>() / mebibyte,
                way["write_requests"].get<double>());
  }
  for (const auto& [name, ratio] : json["ratios"].items())
    std::printf("%-18s %5.2f (at most %.2f)\n", name.c_str(), ratio["value"].get<double>(),
                ratio["target"].get<double>());
}

int run_with(int argc, char** argv) {
  Options options;
  const Program program{
      [&](CLI::App& app) {
        app.add_option("--processes", options.processes)->check(CLI::Range(1, 1024));
        app.add_option("--shrink", options.shrink, "divide writes and bytes")
            ->check(CLI::Range(1, 40));
        app.add_option("--seed", options.seed, "of the sizes");
        app.add_option("--ways", options.ways)
            ->delimiter(',')
            ->check(CLI::IsMember(Options().ways));
        app.add_option("--pool-mib", options.pool_mib, "of all ways with a pool; 0: one version");
        app.add_option("--threshold-kib", options.threshold_kib, "of the way aggregate")
            ->check(CLI::Range(1, 1024));
        app.add_option("--checkpoints", options.checkpoints,
                       "also measure the run time of a program that saves so often; 0: not")
            ->check(CLI::Range(0, 100));
        app.add_option("--work", options.work, "how often it fills its memory before each");
      },
      [&] { return Replay(options).run(); }, print_table};
  return run_program("Replay of the write profile of a BLCR checkpoint: files, aggregation, pool",
                     options, argc, argv, program);
}

}  // namespace
}  // namespace backstay::bench

int main(int argc, char** argv) { return backstay::bench::run_with(argc, argv); }
