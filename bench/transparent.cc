// An unmodified process of S MiB under the boot program, without an agent: how long it stands still
// for a cut beside a memcpy of its memory, and how long it takes to bring it back from the pool;
// and the same for a cut that keeps what did not change, where a twentieth of the memory did; and
// for a forked snapshot, beside a bare fork of the same process, and what it costs the process to
// rewrite all of its memory after it. Then the same process in a job (transparent_job.h).
// Each repetition measures limit and ours in turn. The process is this program with --child; it
// does not know that it is saved.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/fd.h"
#include "base/random.h"
#include "base/stream_copy.h"
#include "bench/harness/program.h"
#include "bench/harness/samples.h"
#include "bench/transparent_job.h"
#include "capture/companion/boot_process.h"
#include "capture/companion/snapshot.h"
#include "capture/image/format/image.h"
#include "client/mapping.h"

namespace backstay::bench {
namespace {

using Json = nlohmann::json;
using image::Answer;
using image::Ask;
using image::BootProcess;
using image::Request;

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
constexpr std::uint64_t buffer_bytes = 4 * mebibyte;

struct Options : CommonOptions {
  Options() {
    dir = "build/bench/transparent";
    repetitions = 7;
  }
  std::uint64_t mib = 1024;
};

// What cannot be saved or measured ends the benchmark.
template <typename T>
T sure(Result<T> result) {
  if (!result.ok()) die(result.error().message());
  return std::move(result).value();
}

double seconds_since(std::uint64_t began_ns) {
  return static_cast<double>(system_clock().monotonic_ns() - began_ns) * 1e-9;
}

// What the process that is saved does when it is asked to.
enum class Task : char {
  part = 'p',     // writes a twentieth of its memory, in one piece
  rewrite = 'r',  // writes all of it
  fork = 'f',     // forks itself; the child ends at once
};

double do_task(Task task, std::vector<std::uint64_t>& memory, std::size_t& at) {
  const std::uint64_t began = system_clock().monotonic_ns();
  if (task == Task::fork) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    const double seconds = seconds_since(began);
    ::waitpid(child, nullptr, 0);
    return seconds;
  }
  const std::size_t part = task == Task::part ? memory.size() / 20 : memory.size();
  if (at + part > memory.size()) at = 0;
  for (std::size_t i = at; i < at + part; ++i) memory[i] += 1;
  at += task == Task::part ? part : 0;
  return seconds_since(began);
}

// The process that is saved: fills its memory, says so by a file, and waits. At each SIGUSR2 it
// does the task that another file names, and says how many seconds that took.
[[noreturn]] void be_saved(std::uint64_t mib, const std::string& ready) {
  static volatile std::sig_atomic_t asked = 0;
  std::signal(SIGUSR2, [](int) { asked = 1; });
  sigset_t blocked;
  sigset_t before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR2);
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  std::vector<std::uint64_t> memory(mib * mebibyte / sizeof(std::uint64_t));
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = i * 0x9e3779b97f4a7c15 + 1;
  double seconds = 0;
  for (std::size_t at = 0;;) {
    std::ofstream(ready + ".new") << seconds << "\n";
    std::filesystem::rename(ready + ".new", ready);
    while (!asked) ::sigsuspend(&before);
    asked = 0;
    seconds = do_task(static_cast<Task>(std::ifstream(ready + ".task").get()), memory, at);
  }
}

class Pool {
 public:
  explicit Pool(std::uint64_t bytes) : memory_(::memfd_create("bench", MFD_CLOEXEC)) {
    if (::ftruncate(memory_.get(), static_cast<off_t>(bytes)) != 0) die("no memory for a pool");
    mapping_ = sure(client::Mapping::of(memory_, bytes, true));
    client::touch(mapping_.bytes());
  }
  client::Connection::Pool lent() const { return {memory_.get(), mapping_.bytes(), {}}; }
  std::span<std::byte> bytes() const { return mapping_.bytes(); }

 private:
  Fd memory_;
  client::Mapping mapping_;
};

Request request_for(Ask what) {
  Request request{};
  request.kind = static_cast<std::uint32_t>(what);
  return request;
}

// Returns the bytes of the object that were copied to the pool's start: all, or what is not kept.
std::uint64_t cut(BootProcess& boot, bool keeps, Samples& samples) {
  const std::uint64_t began = system_clock().monotonic_ns();
  Request request = request_for(Ask::cut);
  request.bytes = buffer_bytes;
  request.watches = 1;
  request.keeps = keeps ? 1 : 0;
  const Answer begun = sure(boot.ask(request));
  const std::uint64_t bytes = begun.bytes - begun.kept_bytes;
  for (std::uint64_t at = 0; at < bytes; at += buffer_bytes) {
    Request fill = request_for(Ask::fill);
    fill.at = at;
    fill.bytes = std::min(buffer_bytes, bytes - at);
    sure(boot.ask(fill));
  }
  const Answer ended = sure(boot.ask(request_for(Ask::resume)));
  const std::string of = keeps ? "kept_" : "";
  samples.add(of + "cut_s", seconds_since(began));
  samples.add(of + "stopped_s", static_cast<double>(ended.stopped_ns) * 1e-9);
  samples.add(of + "agreeing_s", static_cast<double>(begun.agreeing_ns) * 1e-9);
  samples.add(of + "describing_s", static_cast<double>(begun.describing_ns) * 1e-9);
  samples.add(of + "mib", static_cast<double>(bytes) / mebibyte);
  return bytes;
}

// Returns how long its task took.
double await_ready(const std::string& ready) {
  while (!std::filesystem::exists(ready)) ::usleep(1000);
  double seconds = 0;
  std::ifstream(ready) >> seconds;
  std::filesystem::remove(ready);
  return seconds;
}

void ask_for(Task task, const BootProcess& boot, const std::string& ready) {
  std::ofstream(ready + ".task") << static_cast<char>(task);
  boot.signal(SIGUSR2);
}

double do_and_wait(Task task, const BootProcess& boot, const std::string& ready) {
  ask_for(task, boot, ready);
  return await_ready(ready);
}

// Nothing is watched, so that its cost is that of the copies alone.
void cut_by_snapshot(BootProcess& boot, const std::string& ready, Samples& samples) {
  do_and_wait(Task::rewrite, boot, ready);
  samples.add("rewrite_s", do_and_wait(Task::rewrite, boot, ready));
  samples.add("bare_fork_s", do_and_wait(Task::fork, boot, ready));
  const std::uint64_t began = system_clock().monotonic_ns();
  Request request = request_for(Ask::cut);
  request.bytes = buffer_bytes;
  const Answer begun = sure(boot.ask(request));
  auto snapshot = sure(image::Snapshot::take(boot));
  const Answer ended = sure(boot.ask(request_for(Ask::resume)));
  ask_for(Task::rewrite, boot, ready);
  for (std::uint64_t at = 0; at < begun.bytes; at += buffer_bytes) {
    Request fill = request_for(Ask::fill);
    fill.at = at;
    fill.bytes = std::min(buffer_bytes, begun.bytes - at);
    sure(snapshot->ask(fill));
  }
  samples.add("snapshot_s", seconds_since(began));
  samples.add("snapshot_stopped_s", static_cast<double>(ended.stopped_ns) * 1e-9);
  samples.add("snapshot_describing_s", static_cast<double>(begun.describing_ns) * 1e-9);
  samples.add("rewrite_beside_snapshot_s", await_ready(ready));
}

void bring_back(const Pool& pool, std::uint64_t bytes, Samples& samples) {
  const Bytes object = pool.bytes().first(bytes);
  const auto footer = sure(image::decode_footer(object.last(image::footer_bytes), object.size()));
  const std::uint64_t tail = footer.table_bytes + image::footer_bytes;
  const Fd table(::memfd_create("table", MFD_CLOEXEC));
  const Bytes end = object.last(tail);
  if (::write(table.get(), end.data(), end.size()) != static_cast<ssize_t>(tail)) die("no memory");
  const std::uint64_t began = system_clock().monotonic_ns();
  const auto boot = sure(BootProcess::start({}, {}));
  if (!boot->lend(pool.lent()).ok()) die("the pool was refused");
  Request request = request_for(Ask::table);
  request.bytes = tail;
  request.object = bytes;
  sure(boot->ask(request, table.get()));
  for (std::uint64_t at = 0; at < bytes; at += buffer_bytes) {
    Request take = request_for(Ask::take);
    take.at = take.object = at;
    take.bytes = std::min(buffer_bytes, bytes - at);
    sure(boot->ask(take));
  }
  sure(boot->ask(request_for(Ask::ready)));
  boot->begin(request_for(Ask::go));
  samples.add("restart_pool_s", seconds_since(began));
}

void copy_memory(std::span<std::byte> to, Bytes from, Samples& samples) {
  const std::uint64_t began = system_clock().monotonic_ns();
  std::memcpy(to.data(), from.data(), from.size());
  samples.add("memcpy_s", seconds_since(began));
}

Json run(Options options) {
  options.dir = std::filesystem::absolute(options.dir);  // an agent runs in a folder of its own
  std::filesystem::create_directories(options.dir);
  const std::string ready = options.dir + "/ready";
  std::filesystem::remove(ready);
  const std::uint64_t bytes = options.mib * mebibyte;
  const Pool pool(bytes + 64 * mebibyte);
  std::vector<std::byte> from(bytes, std::byte{1});
  std::vector<std::byte> to(bytes, std::byte{2});
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto boot =
      sure(BootProcess::start({self, "--child", std::to_string(options.mib), ready}, {}));
  await_ready(ready);
  if (!boot->lend(pool.lent()).ok()) die("the pool was refused");
  Samples samples;
  std::uint64_t object_bytes = 0;
  for (int i = 0; i < options.repetitions; ++i) {
    copy_memory(to, from, samples);
    object_bytes = cut(*boot, /*keeps=*/false, samples);
    bring_back(pool, object_bytes, samples);
    do_and_wait(Task::part, *boot, ready);
    cut(*boot, /*keeps=*/true, samples);
    cut_by_snapshot(*boot, ready, samples);
  }
  measure_job({{self, "--child", std::to_string(options.mib), ready}, ready, options.mib}, options,
              samples);
  Json json{{"benchmark", "transparent"},
            {"memory_mib", options.mib},
            {"image_over_memory_mib", (object_bytes - bytes) / 1.0 / mebibyte}};
  samples.write_to(json);
  json["ratios"] =
      compare(samples, {{"stopped_over_memcpy", "stopped_s", "memcpy_s", 1.25},
                        {"restart_over_memcpy", "restart_pool_s", "memcpy_s", 4},
                        {"image_local_over_raw_write", "local_s", "raw_write_s", 1.15},
                        {"image_cold_over_raw_read", "restart_cold_s", "raw_read_s", 1.2},
                        {"image_cold_over_read_new", "restart_cold_s", "raw_read_new_s", 1.2},
                        {"kept_over_full_stopped", "kept_stopped_s", "stopped_s", 0.125},
                        {"kept_over_full_bytes", "kept_mib", "mib", 0.125},
                        {"snapshot_over_fork", "snapshot_stopped_s", "bare_fork_s", 4}});
  return json;
}

void print_table(const Json& json) {
  std::printf("one process of %llu MiB; image larger than that by %.1f MiB\n",
              json.at("memory_mib").get<unsigned long long>(),
              json.at("image_over_memory_mib").get<double>());
  for (const char* key : {"memcpy_s",
                          "stopped_s",
                          "agreeing_s",
                          "describing_s",
                          "cut_s",
                          "restart_pool_s",
                          "kept_stopped_s",
                          "kept_describing_s",
                          "kept_cut_s",
                          "bare_fork_s",
                          "snapshot_stopped_s",
                          "snapshot_describing_s",
                          "snapshot_s",
                          "rewrite_s",
                          "rewrite_beside_snapshot_s",
                          "raw_write_s",
                          "local_s",
                          "raw_read_s",
                          "raw_read_new_s",
                          "restart_cold_s"}) {
    std::printf("  %-26s %8.1f ms\n", key, 1e3 * json.at(key).get<double>());
  }
  for (const auto& [name, ratio] : json.at("ratios").items()) {
    std::printf("  %-26s %.2f (target %.2f)\n", name.c_str(), ratio.at("value").get<double>(),
                ratio.at("target").get<double>());
  }
}

}  // namespace
}  // namespace backstay::bench

int main(int argc, char** argv) {
  using namespace backstay::bench;
  if (argc == 4 && std::strcmp(argv[1], "--child") == 0) {
    be_saved(std::strtoull(argv[2], nullptr, 10), argv[3]);
  }
  Options options;
  return run_program("An unmodified process: time stopped, and a restart from the pool", options,
                     argc, argv,
                     {[&](CLI::App& app) { app.add_option("--mib", options.mib, "Of its memory"); },
                      [&] { return run(options); }, print_table});
}
