#include "bench/transparent_job.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/harness/agent.h"
#include "bench/harness/disk.h"
#include "bench/harness/shared.h"

namespace backstay::bench {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
constexpr int patience_s = 300;
constexpr const char* job_name = "bench";

pid_t start(const std::vector<std::string>& words, const std::string& config,
            const std::string& output) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) die("fork failed");
  if (pid > 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  ::setenv("BACKSTAY_CONFIG", config.c_str(), 1);
  ::setenv("BACKSTAY_CHECKPOINT_FULL_EVERY", "1", 1);
  const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || ::dup2(file, 1) < 0 || ::dup2(file, 2) < 0) ::_exit(127);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

void await_end(pid_t pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

class Run {
 public:
  Run(const SavedJob& job, const CommonOptions& options)
      : job_(job),
        agent_({options.agent, options.dir + "/job", job_name,
                std::max<std::uint64_t>(job.mib / 4, 16), 2}),
        backstay_(std::filesystem::path(options.agent).parent_path() / "backstay"),
        output_(options.dir + "/job.out") {
    std::filesystem::remove(output_);
  }
  ~Run() {
    if (pid_ > 0) end();
  }

  void begin(bool fresh) {
    agent_.start();
    std::vector<std::string> words{backstay_, "run", "--transparent", "--job", job_name};
    if (fresh) words.emplace_back("--fresh");
    words.emplace_back("--");
    words.insert(words.end(), job_.words.begin(), job_.words.end());
    pid_ = start(words, agent_.config_path(), output_);
  }
  void await_ready() const {
    await("has filled its memory", [this] { return std::filesystem::exists(job_.ready); });
  }
  // Seconds from the cut's begin until the version was on the disk.
  double save() const {
    const std::size_t before = count("local");
    const pid_t asks = start({backstay_, "checkpoint", job_name}, agent_.config_path(), output_);
    await_end(asks);
    await("is on the disk", [&] { return count("local") > before; });
    const Json local = last("local");
    const Json captured = last("captured");
    const auto begun = captured.at("ranks").at(0).at("begin_ns").get<std::int64_t>();
    return 1e-9 * static_cast<double>(local.at("t_ns").get<std::int64_t>() - begun);
  }
  // Takes a last version and ends program and agent; its files' pages are dropped.
  void end() {
    ::kill(pid_, SIGTERM);
    await_end(pid_);
    pid_ = 0;
    agent_.stop();
    drop_cache(agent_.storage_dir());
  }
  double bring_back() {
    const std::size_t before = count("restored");
    begin(/*fresh=*/false);
    await("has come back", [&] { return count("restored") > before; });
    return last("restored").at("seconds").get<double>();
  }

 private:
  template <typename Condition>
  void await(const char* what, const Condition& condition) const {
    for (int tries = 0; !condition(); ++tries) {
      if (tries == 100 * patience_s || ::waitpid(pid_, nullptr, WNOHANG) == pid_) {
        die(std::string("nothing ") + what + "; see " + output_);
      }
      ::poll(nullptr, 0, 10);
    }
  }
  std::vector<Json> events(const std::string& name) const {
    std::vector<Json> found;
    std::ifstream file(agent_.storage_dir() + "/" + job_name + "/events.jsonl");
    for (std::string line; std::getline(file, line);) {
      const Json event = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (event.is_object() && event.value("event", "") == name) found.push_back(event);
    }
    return found;
  }
  std::size_t count(const std::string& name) const { return events(name).size(); }
  Json last(const std::string& name) const { return events(name).back(); }

  const SavedJob& job_;
  Agent agent_;
  const std::string backstay_;
  const std::string output_;
  pid_t pid_ = 0;
};

// What no restart can save: a new process has no memory yet.
double read_into_new_memory_s(const std::string& path, std::size_t bytes) {
  const std::int64_t began = now_ns();
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die("no memory");
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  raw_read_s(path, {static_cast<std::byte*>(memory), bytes}, Way::io_uring);
  const double seconds = 1e-9 * static_cast<double>(now_ns() - began);
  ::munmap(memory, bytes);
  return seconds;
}

}  // namespace

void measure_job(const SavedJob& job, const CommonOptions& options, Samples& samples) {
  const std::size_t bytes = job.mib * mebibyte;
  std::byte* memory = map_touched_huge(bytes);
  const std::string raw = options.dir + "/raw";
  std::filesystem::remove(job.ready);
  Run run(job, options);
  run.begin(/*fresh=*/true);
  run.await_ready();
  for (int i = 0; i < options.repetitions; ++i) {
    std::fprintf(stderr, "transparent: job %d of %d\n", i + 1, options.repetitions);
    samples.add("local_s", run.save());
    samples.add("raw_write_s", raw_write_s(raw, {memory, bytes}, Way::io_uring));
    run.end();
    drop_cache(options.dir);
    samples.add("raw_read_s", raw_read_s(raw, {memory, bytes}, Way::io_uring));
    samples.add("raw_read_new_s", read_into_new_memory_s(raw, bytes));
    samples.add("restart_cold_s", run.bring_back());
  }
  run.end();
  std::filesystem::remove(raw);
  ::munmap(memory, bytes);
}

}  // namespace backstay::bench
