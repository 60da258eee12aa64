// VeloC at the shape of bench/checkpoint: the same processes, the same bytes (README.md here).
//
// Asynchronous, with its backend and a scratch folder on tmpfs; each process for itself
// (VELOC_Init_single), so that no time goes into its own collective calls.
#include <signal.h>
#include <unistd.h>
#include <veloc.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "bench/harness/content.h"
#include "bench/harness/disk.h"
#include "bench/harness/program.h"
#include "bench/harness/rank.h"
#include "bench/harness/samples.h"
#include "bench/harness/shared.h"

namespace backstay::bench {
namespace {

namespace fs = std::filesystem;
constexpr const char* job = "bench";
constexpr std::uint64_t spoiled = 999'999;

struct Options : ShapeOptions {
  Options() : ShapeOptions{{"build/bench/veloc", 7}} {}
  std::string scratch = "/dev/shm/bench-veloc-" + std::to_string(getpid());
};

// One process. Serves the commands of rank.h; `restart` brings back the newest version.
class Process {
 public:
  Process(int rank, std::size_t bytes, std::string config)
      : rank_(rank), data_(map_touched(bytes, false), bytes), config_(std::move(config)) {}

  Report serve(int command, std::uint64_t seed) {
    Report report;
    report.start_ns = now_ns();
    switch (command) {
      case fill: fill_content(data_, rank_seed(seed, rank_)); break;
      case join:
        if (VELOC_Init_single(static_cast<unsigned>(rank_), config_.c_str()) != VELOC_SUCCESS ||
            VELOC_Mem_protect(0, data_.data(), data_.size(), 1) != VELOC_SUCCESS) {
          return Report::failure("VELOC_Init_single");
        }
        break;
      case checkpoint:
        if (VELOC_Checkpoint(job, ++version_) != VELOC_SUCCESS)
          return Report::failure("checkpoint");
        report.end_ns = now_ns();
        if (VELOC_Checkpoint_wait() != VELOC_SUCCESS) return Report::failure("wait");
        report.later_ns = now_ns();
        return report;
      case restart:
        if (VELOC_Restart(job, version_) != VELOC_SUCCESS) return Report::failure("restart");
        break;
      case verify:
        if (!has_content(data_, rank_seed(seed, rank_))) return Report::failure("other bytes");
        break;
      case leave: VELOC_Finalize(0); break;
      default: return Report::failure("unknown command");
    }
    report.end_ns = now_ns();
    return report;
  }

 private:
  int rank_;
  std::span<std::byte> data_;
  std::string config_;
  int version_ = 0;
};

// The backend of this user, which the first process starts and no other process ends; 0 if none
// lives.
pid_t backend() {
  std::ifstream file("/dev/shm/veloc-backend-ready-" + std::to_string(getuid()), std::ios::binary);
  pid_t pid = 0;
  if (!file.read(reinterpret_cast<char*>(&pid), sizeof pid)) return 0;
  return pid > 0 && kill(pid, 0) == 0 ? pid : 0;
}

// Folders and configuration; ends the backend and removes all at the end.
class Place {
 public:
  explicit Place(const Options& options) : scratch_(options.scratch), dir_(options.dir) {
    if (const pid_t pid = backend())
      die("a VeloC backend runs: end process " + std::to_string(pid));
    fs::remove_all(dir_);
    fs::create_directories(persistent());
    fs::create_directories(scratch_);
    std::ofstream(config()) << "scratch = " << scratch_.string()
                            << "\npersistent = " << persistent().string()
                            << "\nmode = async\nmax_versions = 2\nscratch_versions = 2\n"
                            << "log_prefix = " << dir_.string() << "\n";
    const std::string prefix = BACKSTAY_PEER_VELOC;
    setenv("VELOC_BIN", (prefix + "/bin").c_str(), 0);
    const char* libraries = std::getenv("LD_LIBRARY_PATH");
    setenv("LD_LIBRARY_PATH",
           (prefix + "/lib" + (libraries != nullptr ? std::string(":") + libraries : "")).c_str(),
           1);
  }
  ~Place() {
    if (const pid_t pid = backend()) kill(pid, SIGTERM);
    std::error_code ignored;
    fs::remove_all(scratch_, ignored);
    fs::remove_all(persistent(), ignored);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  fs::path persistent() const { return dir_ / "persistent"; }
  fs::path config() const { return dir_ / "veloc.cfg"; }
  void empty_scratch() const {
    for (const auto& entry : fs::directory_iterator(scratch_)) fs::remove_all(entry.path());
  }

 private:
  fs::path scratch_;
  fs::path dir_;
};

nlohmann::json run(Options options) {
  options.dir = fs::absolute(options.dir).string();
  const Place place(options);
  const std::size_t bytes = options.mib << 20;
  Workers workers(options.ranks, [&](const backstay_group& group) -> Workers::Serve {
    auto process = std::make_shared<Process>(group.rank, bytes, place.config().string());
    return [process](int command, std::uint64_t seed) { return process->serve(command, seed); };
  });
  workers.command(join);
  workers.command(fill, spoiled);
  workers.command(checkpoint);  // the first one is not measured, as in bench/checkpoint
  Samples samples;
  for (int i = 1; i <= options.repetitions; ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    std::fprintf(stderr, "veloc: repetition %d of %d\n", i, options.repetitions);
    workers.command(fill, seed);
    const Outcome saved = workers.command(checkpoint);
    drop_cache(place.persistent().string());  // VeloC does not sync: the data is on the disk now
    samples.add("blocked_s", saved.slowest_s);
    samples.add("local_s", static_cast<double>(now_ns() - saved.first_start_ns) / 1e9);
    for (const char* key : {"restart_memory_s", "restart_disk_s"}) {
      workers.command(fill, spoiled);
      samples.add(key, workers.command(restart).slowest_s);
      workers.command(verify, seed);
      place.empty_scratch();  // so the second restart reads the disk
    }
  }
  workers.command(leave);
  nlohmann::json json = {{"what", "VeloC " BACKSTAY_PEER_VELOC_RELEASE
                                  ", asynchronous, scratch on tmpfs, no checksums"},
                         {"ranks", options.ranks},
                         {"mib", options.mib}};
  samples.write_to(json);
  return json;
}

int run_with(int argc, char** argv) {
  Options options;
  const Program program{
      [&](CLI::App& app) {
        options.add_to(app);
        app.add_option("--scratch", options.scratch, "folder of VeloC's scratch files; is removed");
      },
      [&] { return run(options); },
      [](const nlohmann::json& json) { std::printf("%s\n", json.dump(2).c_str()); }};
  return run_program("VeloC at the shape of bench/checkpoint", options, argc, argv, program);
}

}  // namespace
}  // namespace backstay::bench

int main(int argc, char** argv) { return backstay::bench::run_with(argc, argv); }
