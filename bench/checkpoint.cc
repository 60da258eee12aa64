// R ranks x S MiB through the real agent, beside the limits of the machine in the same run
// (docs/benchmarks.md). Every repetition measures limit and ours in turn:
//
//   hot:   memcpy, checkpoint (blocked, local), raw write, restart from the pool
//   cold:  raw read; agent stopped, caches dropped, new agent, new processes, restart
//
// Every repetition saves other bytes, and every restart is compared with what was saved.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/harness/agent.h"
#include "bench/harness/content.h"
#include "bench/harness/disk.h"
#include "bench/harness/program.h"
#include "bench/harness/rank.h"
#include "bench/harness/samples.h"
#include "bench/harness/shared.h"
#include "bench/harness/workers.h"

namespace backstay::bench {
namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
constexpr std::uint64_t resident_slack = 64 * mebibyte;
constexpr std::uint64_t spoiled = 999'999;  // a seed that no version has

struct Options : ShapeOptions {
  Options() : ShapeOptions{{"build/bench/checkpoint", 7}} {}
  std::uint64_t pool_mib = 0;
  std::string compare;
};

// One shape of job: a number of ranks with a number of MiB each, with an agent of its own.
class Job {
 public:
  Job(const Options& options, int ranks, std::uint64_t mib)
      : ranks_(ranks), mib_(mib), agent_(agent_options(options, ranks, mib)) {
    agent_.start();
    resident_ = std::make_unique<ResidentPeak>(agent_.pid());
    workers_ = std::make_unique<Workers>(ranks, make_rank({rank_bytes()}, agent_.config_path()));
    samples.add("init_s", workers_->command(join).slowest_s);
    workers_->command(fill, spoiled);
    samples.add("first_blocked_s", workers_->command(checkpoint).slowest_s);
  }

  void hot(std::uint64_t seed) {
    workers_->command(fill, seed);
    add("memcpy", workers_->command(copy));
    const Outcome saved = workers_->command(checkpoint);
    add("blocked", saved);
    samples.add("local_s", static_cast<double>(saved.last_later_ns - saved.first_start_ns) / 1e9);
    workers_->command(fill, spoiled);
    add("memcpy", workers_->command(copy));
    add("restart_pool", workers_->command(restart));
    workers_->command(verify, seed);
    newest_seed_ = seed;
  }

  // After the last hot().
  void stop() {
    if (workers_ == nullptr) return;
    workers_->command(leave);
    workers_.reset();
    resident_max_ = resident_->bytes();
    resident_.reset();
    agent_.stop();
  }

  void cold() {
    stop();
    agent_.stop();
    drop_cache(agent_.storage_dir());
    agent_.start();
    Workers workers(ranks_, make_rank({rank_bytes(), false}, agent_.config_path()));
    workers.command(fill, spoiled);
    workers.command(join);
    add("restart_cold", workers.command(restart));
    workers.command(verify, newest_seed_);
    workers.command(leave);
  }

  nlohmann::json to_json() const {
    nlohmann::json json = {{"ranks", ranks_}, {"mib", mib_}, {"bytes", bytes()}};
    samples.write_to(json);
    json["agent"] = {{"pool_bytes", agent_.pool_bytes()},
                     {"resident_bytes_max", resident_max_},
                     {"limit_bytes", agent_.pool_bytes() + resident_slack},
                     {"reached", resident_max_ <= agent_.pool_bytes() + resident_slack}};
    return json;
  }

  std::uint64_t bytes() const { return rank_bytes() * static_cast<std::uint64_t>(ranks_); }
  std::string shape() const { return std::to_string(ranks_) + "x" + std::to_string(mib_); }

  Samples samples;

 private:
  static AgentOptions agent_options(const Options& options, int ranks, std::uint64_t mib) {
    AgentOptions agent;
    agent.program = options.agent;
    agent.job = "bench-" + std::to_string(ranks) + "x" + std::to_string(mib);
    agent.folder = std::filesystem::absolute(options.dir) / agent.job;
    // A rank's last buffer is not full (its object has a tail); one more each as room to move.
    const std::uint64_t buffers = static_cast<std::uint64_t>(ranks) * (mib / 4 + 2);
    agent.pool_mib = options.pool_mib != 0 ? options.pool_mib : buffers * 4;
    return agent;
  }

  std::uint64_t rank_bytes() const { return mib_ * mebibyte; }
  void add(const std::string& what, const Outcome& outcome) {
    samples.add(what + "_s", outcome.slowest_s);
    samples.add(what + "_span_s", outcome.span_s);
  }

  int ranks_;
  std::uint64_t mib_;
  std::uint64_t newest_seed_ = spoiled;
  std::uint64_t resident_max_ = 0;
  Agent agent_;
  std::unique_ptr<ResidentPeak> resident_;
  std::unique_ptr<Workers> workers_;
};

// Raw writes and reads of as many bytes as the job saves, both ways; the better one is the limit.
class RawDisk {
 public:
  RawDisk(const Options& options, std::uint64_t bytes)
      : path_(options.dir + "/raw"), memory_(map_touched_huge(bytes), bytes) {
    fill_content(memory_, spoiled);
  }
  ~RawDisk() { std::remove(path_.c_str()); }

  void write(Samples& samples) {
    samples.add("raw_write_io_uring_s", raw_write_s(path_, memory_, Way::io_uring));
    samples.add("raw_write_pwrite_s", raw_write_s(path_, memory_, Way::one_by_one));
  }
  void read(Samples& samples) {
    samples.add("raw_read_io_uring_s", raw_read_s(path_, memory_, Way::io_uring));
    samples.add("raw_read_pread_s", raw_read_s(path_, memory_, Way::one_by_one));
  }

 private:
  std::string path_;
  std::span<std::byte> memory_;
};

void keep_better(Samples& samples, const std::string& as, const std::string& a,
                 const std::string& b) {
  const std::string& better = samples.median_of(a) <= samples.median_of(b) ? a : b;
  for (const double sample : samples.of(better)) samples.add(as, sample);
}

nlohmann::json run(const Options& options) {
  std::filesystem::create_directories(options.dir);
  Job job(options, options.ranks, options.mib);
  std::unique_ptr<Job> other;
  if (!options.compare.empty()) {
    int ranks = 0;
    unsigned mib = 0;
    if (std::sscanf(options.compare.c_str(), "%dx%u", &ranks, &mib) != 2) die("--compare RxS");
    other = std::make_unique<Job>(options, ranks, mib);
  }
  RawDisk raw(options, job.bytes());
  for (int i = 1; i <= options.repetitions; ++i) {
    std::fprintf(stderr, "checkpoint: repetition %d of %d\n", i, options.repetitions);
    job.hot(static_cast<std::uint64_t>(i));
    raw.write(job.samples);
    if (other) other->hot(static_cast<std::uint64_t>(i));
  }
  job.stop();
  if (other) other->stop();
  for (int i = 1; i <= options.repetitions; ++i) {
    std::fprintf(stderr, "checkpoint: cold restart %d of %d\n", i, options.repetitions);
    raw.read(job.samples);
    job.cold();
  }
  keep_better(job.samples, "raw_write_s", "raw_write_io_uring_s", "raw_write_pwrite_s");
  keep_better(job.samples, "raw_read_s", "raw_read_io_uring_s", "raw_read_pread_s");

  nlohmann::json json = job.to_json();
  json["benchmark"] = "checkpoint";
  json["repetitions"] = options.repetitions;
  json["direct"] = direct_works(options.dir);
  json["ratios"] =
      compare(job.samples, {{"blocked_over_memcpy", "blocked_s", "memcpy_s", 1.25},
                            {"local_over_raw_write", "local_s", "raw_write_s", 1.15},
                            {"restart_cold_over_raw_read", "restart_cold_s", "raw_read_s", 1.15},
                            {"restart_pool_over_memcpy", "restart_pool_s", "memcpy_s", 2}});
  if (other) {
    json["compare"] = other->to_json();
    Samples both;
    both.add("limit", job.samples.median_of("blocked_s"));
    both.add("ours", other->samples.median_of("blocked_s"));
    json["ratios"].update(compare(
        both, {{"blocked_" + other->shape() + "_over_" + job.shape(), "ours", "limit", 1.3}}));
  }
  return json;
}

void print_table(const nlohmann::json& json) {
  std::printf("%d ranks x %d MiB, medians of %d\n", json["ranks"].get<int>(),
              json["mib"].get<int>(), json["repetitions"].get<int>());
  std::printf("%-32s %10s %10s %7s %7s  %s\n", "", "ours s", "limit s", "ratio", "target",
              "reached");
  for (const auto& [name, ratio] : json["ratios"].items()) {
    std::printf("%-32s %10.4f %10.4f %7.2f %7.2f  %s\n", name.c_str(), ratio["ours"].get<double>(),
                ratio["limit"].get<double>(), ratio["value"].get<double>(),
                ratio["target"].get<double>(), ratio["reached"].get<bool>() ? "yes" : "no");
  }
  std::printf("agent: %.0f MiB resident at most, pool %.0f MiB\n",
              json["agent"]["resident_bytes_max"].get<double>() / mebibyte,
              json["agent"]["pool_bytes"].get<double>() / mebibyte);
}

int run_with(int argc, char** argv) {
  Options options;
  const Program program{[&](CLI::App& app) {
                          options.add_to(app);
                          app.add_option("--pool-mib", options.pool_mib,
                                         "pool size; 0: one version fits");
                          app.add_option("--compare", options.compare,
                                         "a second shape in the same run, for example 64x16");
                        },
                        [&] { return run(options); }, print_table};
  return run_program(
      "Checkpoint and restart through the node's agent, beside memcpy and the raw disk", options,
      argc, argv, program);
}

}  // namespace
}  // namespace backstay::bench

int main(int argc, char** argv) { return backstay::bench::run_with(argc, argv); }
