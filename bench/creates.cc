// How many objects a second processes make, and how fast they fill them: files in one folder, one
// shared file, and streams (paper 000, Fig. 4.2 a to c).
//
// A file is made by open(O_CREAT | O_EXCL), a write of `small` bytes, and close. A stream is made
// by backstay_stream_open, a write of as many bytes, and close; the time includes the checkpoint
// that takes all of them. "synced" is the time until both are on the disk: syncfs, and level local.
// Throughput: each process writes `mib` into a file of its own, into its part of one shared file,
// or into one stream. The limit is one large file past the page cache, written by one process.
// Choose the file system with --dir.
//
//   bench/creates
//   bench/creates --dir /mnt/nfs/x --processes 8 --files 10000 --repetitions 3
#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "backstay/backstay_streams.h"
#include "bench/harness/agent.h"
#include "bench/harness/disk.h"
#include "bench/harness/program.h"
#include "bench/harness/samples.h"
#include "bench/harness/workers.h"

namespace backstay::bench {
namespace {

struct Options : CommonOptions {
  Options() : CommonOptions{"build/bench/creates", 5} {}
  int processes = 4;
  int files = 2500;
  std::uint64_t small = 4096;
  std::uint64_t mib = 64;
};

enum Command { make_files, make_streams, write_own, write_shared, write_stream, leave };

// One process. All times but `later_ns` end with the last close, or captured.
class Maker {
 public:
  Maker(const Options& options, const std::string& config, const backstay_group& group)
      : options_(options), rank_(group.rank), data_(std::max(options.mib << 20, options.small)) {
    std::memset(data_.data(), rank_ + 1, data_.size());
    if (backstay_init_group(&group, config.c_str()) != BACKSTAY_OK) {
      failed_ = library_failure("backstay_init_group");
    }
  }

  Report serve(int command, std::uint64_t round) {
    if (failed_.failed) return failed_;
    const bool many = command == make_files || command == make_streams;
    const std::uint64_t bytes = many ? options_.small : options_.mib << 20;
    const int count = many ? options_.files : 1;
    Report report;
    report.start_ns = now_ns();
    switch (command) {
      case make_files:
      case write_own: return files(report, round, count, bytes);
      case write_shared: return shared(report, bytes);
      case make_streams:
      case write_stream: return streams(report, count, bytes);
      default: return backstay_finalize() == BACKSTAY_OK ? report : library_failure("finalize");
    }
  }

 private:
  std::string path(std::uint64_t round, int number) const {
    return options_.dir + "/files/" + std::to_string(round) + "-" + std::to_string(rank_) + "-" +
           std::to_string(number);
  }

  bool put(int fd, std::uint64_t bytes, std::uint64_t offset) const {
    for (std::uint64_t at = 0; at < bytes;) {
      const ssize_t done =
          ::pwrite(fd, data_.data() + at, bytes - at, static_cast<off_t>(offset + at));
      if (done <= 0) return false;
      at += static_cast<std::uint64_t>(done);
    }
    return true;
  }

  Report synced(Report report) const {
    report.end_ns = now_ns();
    const int folder = ::open(options_.dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool good = folder >= 0 && ::syncfs(folder) == 0;
    ::close(folder);
    report.later_ns = now_ns();
    return good ? report : Report::failure("syncfs");
  }

  Report files(Report report, std::uint64_t round, int count, std::uint64_t bytes) const {
    for (int number = 0; number < count; ++number) {
      const int fd = ::open(path(round, number).c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
      const bool good = fd >= 0 && put(fd, bytes, 0);
      if (::close(fd) != 0 || !good) return Report::failure("a file: " + path(round, number));
    }
    return synced(report);
  }

  Report shared(Report report, std::uint64_t bytes) const {
    const int fd = ::open((options_.dir + "/files/shared").c_str(), O_WRONLY | O_CREAT, 0600);
    const bool good = fd >= 0 && put(fd, bytes, bytes * static_cast<std::uint64_t>(rank_));
    if (::close(fd) != 0 || !good) return Report::failure("the shared file");
    return synced(report);
  }

  Report streams(Report report, int count, std::uint64_t bytes) const {
    for (int number = 0; number < count; ++number) {
      backstay_stream stream = 0;
      const std::string name = std::to_string(number);
      if (backstay_stream_open(name.c_str(), &stream) != BACKSTAY_OK ||
          backstay_stream_write(stream, data_.data(), bytes) != BACKSTAY_OK ||
          backstay_stream_close(stream) != BACKSTAY_OK) {
        return library_failure("backstay_stream_*");
      }
    }
    const Report taken = timed_checkpoint();
    if (taken.failed) return taken;
    report.end_ns = taken.end_ns;
    report.later_ns = taken.later_ns;
    return report;
  }

  const Options options_;
  const int rank_;
  std::vector<char> data_;
  Report failed_;
};

void empty_folder(const std::string& folder) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
}

void measure(const Options& options, Workers& workers, int command, const char* name,
             std::uint64_t round, Samples& samples) {
  empty_folder(options.dir + "/files");
  const Outcome outcome = workers.command(command, round);
  const bool many = command == make_files || command == make_streams;
  const double amount = many ? static_cast<double>(options.files) * options.processes
                             : static_cast<double>(options.mib << 20) * options.processes;
  const double synced_s =
      1e-9 * static_cast<double>(outcome.last_later_ns - outcome.first_start_ns);
  samples.add(std::string(name) + "_per_s", amount / outcome.span_s);
  samples.add(std::string(name) + "_synced_per_s", amount / synced_s);
}

void measure_limit(const Options& options, Samples& samples) {
  constexpr std::size_t page = 4096;  // of O_DIRECT
  const std::uint64_t mib = std::clamp<std::uint64_t>(
      options.mib * static_cast<std::uint64_t>(options.processes), 1, 256);
  std::vector<std::byte> room((mib << 20) + page, std::byte{7});
  void* from = room.data();
  std::size_t left = room.size();
  std::align(page, mib << 20, from, left);
  empty_folder(options.dir + "/files");
  const double took_s = raw_write_s(
      options.dir + "/files/raw", {static_cast<const std::byte*>(from), mib << 20}, Way::io_uring);
  samples.add("disk_bytes_per_s", static_cast<double>(mib << 20) / took_s);
}

nlohmann::json run(const Options& options) {
  empty_folder(options.dir);
  const std::uint64_t each_mib =
      std::max(options.mib, (options.small * static_cast<std::uint64_t>(options.files)) >> 20);
  const std::uint64_t pool_mib =
      2 * (each_mib + 16) * static_cast<std::uint64_t>(options.processes);
  Agent agent({options.agent, options.dir + "/agent", "creates", pool_mib});
  agent.start();
  const std::string config = agent.config_path();
  Samples samples;
  {
    Workers workers(options.processes, [&](const backstay_group& group) {
      auto maker = std::make_shared<Maker>(options, config, group);
      return [maker](int command, std::uint64_t round) { return maker->serve(command, round); };
    });
    for (int round = 0; round < options.repetitions; ++round) {
      measure_limit(options, samples);
      measure(options, workers, make_files, "files", round, samples);
      measure(options, workers, make_streams, "streams", round, samples);
      measure(options, workers, write_own, "own_file_bytes", round, samples);
      measure(options, workers, write_shared, "shared_file_bytes", round, samples);
      measure(options, workers, write_stream, "stream_bytes", round, samples);
    }
    workers.command(leave);
  }
  agent.stop();
  struct statfs info {};
  ::statfs(options.dir.c_str(), &info);
  nlohmann::json json{{"benchmark", "creates"},
                      {"file_system", info.f_type},
                      {"processes", options.processes},
                      {"files", options.files},
                      {"small_bytes", options.small},
                      {"mib", options.mib},
                      {"repetitions", options.repetitions}};
  samples.write_to(json);
  json["streams_over_files"] =
      samples.median_of("streams_per_s") / samples.median_of("files_per_s");
  json["streams_over_files_synced"] =
      samples.median_of("streams_synced_per_s") / samples.median_of("files_synced_per_s");
  // α_c of the planner: a process makes one object for each checkpoint.
  json["startup_s_per_object"] = 1 / samples.median_of("streams_per_s");
  empty_folder(options.dir + "/files");
  return json;
}

void print_table(const nlohmann::json& json) {
  const auto number = [&](const char* key) { return json.at(key).get<double>(); };
  std::printf(
      "creates a second: files %.0f, streams %.0f (%.1f x); on the disk %.0f, %.0f (%.1f x)\n",
      number("files_per_s"), number("streams_per_s"), number("streams_over_files"),
      number("files_synced_per_s"), number("streams_synced_per_s"),
      number("streams_over_files_synced"));
  std::printf("GB/s: own file %.2f, shared file %.2f, stream %.2f; on the disk %.2f, %.2f, %.2f\n",
              1e-9 * number("own_file_bytes_per_s"), 1e-9 * number("shared_file_bytes_per_s"),
              1e-9 * number("stream_bytes_per_s"), 1e-9 * number("own_file_bytes_synced_per_s"),
              1e-9 * number("shared_file_bytes_synced_per_s"),
              1e-9 * number("stream_bytes_synced_per_s"));
  std::printf("GB/s of the disk: %.2f\n", 1e-9 * number("disk_bytes_per_s"));
}

}  // namespace
}  // namespace backstay::bench

int main(int argc, char** argv) {
  using namespace backstay::bench;
  Options options;
  const auto add_options = [&](CLI::App& app) {
    app.add_option("--processes", options.processes, "Processes")->check(CLI::Range(1, 1024));
    app.add_option("--files", options.files, "Files and streams of each")
        ->check(CLI::Range(1, 1'000'000));
    app.add_option("--small", options.small, "Bytes of each of these");
    app.add_option("--mib", options.mib, "MiB that each process writes for the throughput");
  };
  return run_program("Creates a second of files and streams, and their throughput.", options, argc,
                     argv, {add_options, [&] { return run(options); }, print_table});
}
