// What Backstay costs a program that is not being saved, and what its parts cost
// (docs/benchmarks.md): backstay_due(), checksum, copy, manifest, messages.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "backstay/backstay.h"
#include "base/checksum.h"
#include "base/stream_copy.h"
#include "bench/harness/agent.h"
#include "bench/harness/content.h"
#include "bench/harness/program.h"
#include "bench/harness/samples.h"
#include "bench/harness/shared.h"
#include "format/manifest.h"
#include "format/segment.h"
#include "wire/message.h"

namespace backstay::bench {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{4} << 20;
constexpr std::size_t chunks_per_manifest = 100'000;

struct Options : CommonOptions {
  Options() : CommonOptions{"build/bench/overhead", 15} {}
  int steps = 2000;
  std::size_t copy_mib = 256;
  std::string min_time = "0.2";
};

// Two touched blocks that no cache holds.
struct Blocks {
  explicit Blocks(std::size_t bytes)
      : size(bytes), from(map_touched(bytes, false)), to(map_touched(bytes, false)) {
    fill_content({from, bytes}, 1);
  }
  std::size_t size;
  std::byte* from;
  std::byte* to;
};

void due(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(backstay_due());
}

void copy_plain(benchmark::State& state, const Blocks& blocks) {
  for (auto _ : state) std::memcpy(blocks.to, blocks.from, blocks.size);
}

template <typename Copy>
void copy_by_buffers(benchmark::State& state, const Blocks& blocks, Copy copy) {
  for (auto _ : state) {
    for (std::size_t at = 0; at < blocks.size; at += buffer_bytes) {
      copy(blocks.to + at, Bytes(blocks.from + at, buffer_bytes));
    }
  }
}

void copy_streamed(benchmark::State& state, const Blocks& blocks) {
  copy_by_buffers(state, blocks, [](std::byte* to, Bytes from) { stream_copy(to, from); });
}

void copy_checked(benchmark::State& state, const Blocks& blocks) {
  Checksum sum;
  copy_by_buffers(state, blocks, [&sum](std::byte* to, Bytes from) {
    sum.reset();
    sum.update_copy(to, from);
    benchmark::DoNotOptimize(sum.digest());
  });
}

void only_checksum(benchmark::State& state, const Blocks& blocks) {
  copy_by_buffers(state, blocks,
                  [](std::byte*, Bytes from) { benchmark::DoNotOptimize(checksum(from)); });
}

format::Manifest make_manifest() {
  format::Manifest manifest;
  manifest.job = "bench";
  manifest.version = 1;
  manifest.ranks = 64;
  manifest.chunk_bytes_max = buffer_bytes;
  manifest.segment_bytes = format::segment_header_bytes + chunks_per_manifest * buffer_bytes;
  std::vector<std::uint64_t> sizes(manifest.ranks);
  for (std::size_t i = 0; i < chunks_per_manifest; ++i) {
    const auto rank = static_cast<Rank>(i % manifest.ranks);
    manifest.chunks.push_back({rank, buffer_bytes, sizes[rank],
                               format::segment_header_bytes + i * buffer_bytes,
                               content_word(1, i)});
    sizes[rank] += buffer_bytes;
  }
  std::vector<std::pair<Rank, std::uint64_t>> objects;
  for (Rank rank = 0; rank < manifest.ranks; ++rank) objects.emplace_back(rank, sizes[rank]);
  if (!format::build_index(manifest, objects).ok()) die("build_index failed");
  return manifest;
}

void manifest_encode(benchmark::State& state) {
  const format::Manifest manifest = make_manifest();
  for (auto _ : state) benchmark::DoNotOptimize(format::encode(manifest));
}

void manifest_decode(benchmark::State& state) {
  const Buffer encoded = format::encode(make_manifest());
  for (auto _ : state) {
    if (!format::decode_manifest(encoded).ok()) die("decode_manifest failed");
  }
}

wire::Message make_message() {
  wire::Filled filled{7, {}};
  for (std::uint32_t i = 0; i < wire::list_entries_max; ++i) {
    filled.chunks.push_back({i, buffer_bytes, std::uint64_t{i} * buffer_bytes, content_word(2, i)});
  }
  return filled;
}

void message_encode(benchmark::State& state) {
  const wire::Message message = make_message();
  for (auto _ : state) benchmark::DoNotOptimize(wire::encode(message));
}

void message_decode(benchmark::State& state) {
  const Buffer packet = wire::encode(make_message()).value();
  for (auto _ : state) {
    if (!wire::decode(packet).ok()) die("decode failed");
  }
}

// Runs all micro benchmarks; nanoseconds of one iteration by name.
nlohmann::json run_micro(const Options& options, const Blocks& blocks) {
  benchmark::RegisterBenchmark("due_ns", due);
  benchmark::RegisterBenchmark("memcpy_ns", copy_plain, blocks);
  benchmark::RegisterBenchmark("update_copy_ns", copy_checked, blocks);
  benchmark::RegisterBenchmark("stream_copy_ns", copy_streamed, blocks);
  benchmark::RegisterBenchmark("checksum_ns", only_checksum, blocks);
  benchmark::RegisterBenchmark("manifest_encode_ns", manifest_encode);
  benchmark::RegisterBenchmark("manifest_decode_ns", manifest_decode);
  benchmark::RegisterBenchmark("message_encode_ns", message_encode);
  benchmark::RegisterBenchmark("message_decode_ns", message_decode);
  std::string name = "overhead";
  std::string min_time = "--benchmark_min_time=" + options.min_time;
  char* arguments[] = {name.data(), min_time.data(), nullptr};
  int count = 2;
  benchmark::Initialize(&count, arguments);
  std::ostringstream text;
  benchmark::JSONReporter reporter;
  reporter.SetOutputStream(&text);
  reporter.SetErrorStream(&text);
  benchmark::RunSpecifiedBenchmarks(&reporter);
  nlohmann::json result;
  const nlohmann::json all = nlohmann::json::parse(text.str());
  for (const auto& one : all["benchmarks"]) {
    result[one["name"].get<std::string>()] = one["real_time"];
  }
  return result;
}

// One step of a small program: about 20 microseconds.
void compute_step(std::vector<double>& u) {
  for (int sweep = 0; sweep < 8; ++sweep) {
    for (std::size_t i = 1; i + 1 < u.size(); ++i)
      u[i] = 0.25 * u[i - 1] + 0.5 * u[i] + 0.25 * u[i + 1];
  }
  benchmark::DoNotOptimize(u.data());
}

double steps_s(const Options& options, std::vector<double>& u, bool with_due) {
  const std::int64_t start = now_ns();
  for (int step = 0; step < options.steps; ++step) {
    compute_step(u);
    if (with_due && backstay_due() != 0) die("a checkpoint is due that was not requested");
  }
  return static_cast<double>(now_ns() - start) / 1e9;
}

// The same steps with and without backstay_due(), in turn.
Samples run_steps(const Options& options) {
  std::vector<double> u(1024, 1.0);
  Samples samples;
  steps_s(options, u, false);
  for (int i = 0; i < options.repetitions; ++i) {
    samples.add("without_due_s", steps_s(options, u, false));
    samples.add("with_due_s", steps_s(options, u, true));
  }
  return samples;
}

nlohmann::json run(const Options& options) {
  AgentOptions agent_options;
  agent_options.program = options.agent;
  agent_options.folder = std::filesystem::absolute(options.dir);
  agent_options.job = "bench-overhead";
  agent_options.pool_mib = 64;
  Agent agent(agent_options);
  agent.start();
  if (backstay_init(agent.config_path().c_str()) != BACKSTAY_OK) die(backstay_error_message());
  double state[1024] = {};
  if (backstay_protect("state", state, 1024, BACKSTAY_DOUBLE) != BACKSTAY_OK) die("protect");

  const double agent_before_s = cpu_s(agent.pid());
  const std::int64_t start = now_ns();
  const Samples samples = run_steps(options);
  const double wall_s = static_cast<double>(now_ns() - start) / 1e9;
  const double agent_s = cpu_s(agent.pid()) - agent_before_s;

  nlohmann::json json = run_micro(options, Blocks(options.copy_mib << 20));
  samples.write_to(json);
  json["benchmark"] = "overhead";
  json["copy_mib"] = options.copy_mib;
  json["agent_cpu_share"] = agent_s / wall_s;
  json["ratios"] =
      compare(samples, {{"steps_with_due_over_without", "with_due_s", "without_due_s", 1.01}});
  backstay_finalize();
  return json;
}

void print_table(const nlohmann::json& json) {
  for (const auto& [name, value] : json.items()) {
    if (value.is_number()) std::printf("%-24s %14.4g\n", name.c_str(), value.get<double>());
  }
}

int run_with(int argc, char** argv) {
  Options options;
  const Program program{
      [&](CLI::App& app) {
        app.add_option("--steps", options.steps, "steps of each repetition");
        app.add_option("--copy-mib", options.copy_mib, "size of the copies; a multiple of 4");
        app.add_option("--min-time", options.min_time, "seconds for each micro benchmark");
      },
      [&] { return run(options); }, print_table};
  return run_program("Cost of Backstay while nothing is saved, and of its parts", options, argc,
                     argv, program);
}

}  // namespace
}  // namespace backstay::bench

int main(int argc, char** argv) { return backstay::bench::run_with(argc, argv); }
