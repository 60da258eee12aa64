#include "agent/status.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

namespace backstay::agent {

namespace {

using nlohmann::json;

std::uint64_t resident_bytes() {
  unsigned long total = 0;
  unsigned long resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%lu %lu", &total, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

json version_json(const Job& job, VersionNumber number) {
  const wire::LevelIs level = job.level_of(number);
  json out = {{"version", number},
              {"level", level_name(level.level)},
              {"bytes", 0},
              {"written_bytes", 0},
              {"captured_ns", 0},
              {"local_ns", 0},
              {"durable_ns", 0},
              {"in_pool", false},
              {"error", level.message}};
  if (const auto at = job.state().memory.find(number); at != job.state().memory.end()) {
    out["bytes"] = at->second.bytes();
    out["written_bytes"] = at->second.written_bytes;
    out["captured_ns"] = at->second.captured_ns;
    out["local_ns"] = at->second.local_ns;
    out["in_pool"] = at->second.captured && at->second.whole;
    out["filling"] = !at->second.captured;
  }
  if (const auto at = job.state().disk.find(number);
      at != job.state().disk.end() && at->second.level != Level::none) {
    out["bytes"] = out["written_bytes"] = at->second.record.payload_bytes;
    out["captured_ns"] = at->second.record.captured_ns;
    out["local_ns"] = at->second.record.committed_ns;
  }
  if (job.state().is_durable(number)) {
    const format::CommitRecord& record = job.state().durable.at(number).record;
    out["bytes"] = out["written_bytes"] = record.payload_bytes;
    out["captured_ns"] = record.captured_ns;
    out["durable_ns"] = record.committed_ns;
  }
  return out;
}

json job_json(const Job& job) {
  std::set<VersionNumber> numbers;
  for (const auto& [number, version] : job.state().memory) numbers.insert(number);
  for (const auto& [number, stored] : job.state().disk) numbers.insert(number);
  for (const auto& [number, stored] : job.state().durable) numbers.insert(number);
  json versions = json::array();
  for (const VersionNumber number : numbers) versions.push_back(version_json(job, number));
  return {{"job", job.name()},
          {"dir", job.dir()},
          {"run", fmt::format("{:016x}", job.state().run)},
          {"ranks", job.state().ranks},
          {"connected", job.state().links.size()},
          {"stop_requested", job.stop_requested()},
          {"versions", std::move(versions)}};
}

json pool_json(const StatusInput& input) {
  std::uint32_t cached = 0;
  std::uint32_t writing = 0;
  std::uint32_t filled = 0;
  for (const Job* job : input.jobs) {
    for (const auto& [number, version] : job->state().memory) {
      for (const HeldChunk& chunk : version.chunks) {
        if (chunk.released) continue;
        ++(chunk.in_store ? writing : version.local ? cached : filled);
      }
    }
  }
  const Pool& pool = *input.pool;
  return {{"bytes", pool.bytes()},    {"buffer_bytes", pool.buffer_bytes()},
          {"buffers", pool.count()},  {"free", pool.free_count()},
          {"cached", cached},         {"filling", filled},
          {"writing", writing},       {"huge_pages", pool.huge_pages()},
          {"touched", pool.touched()}};
}

// A path or a message may hold any bytes.
std::string text_of(const json& document) {
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string to_json(const StatusInput& input) {
  json jobs = json::array();
  for (const Job* job : input.jobs) jobs.push_back(job_json(*job));
  const json out = {{"release", BACKSTAY_VERSION},
                    {"pid", ::getpid()},
                    {"uptime_s", input.uptime_s},
                    {"socket", input.socket_path},
                    {"resident_bytes", resident_bytes()},
                    {"pool", pool_json(input)},
                    {"disk",
                     {{"written_bytes", input.written_bytes},
                      {"read_bytes", input.read_bytes},
                      {"io_uring", input.disk.io_uring},
                      {"direct", input.disk.direct},
                      {"registered_buffers", input.disk.registered_buffers},
                      {"why_not", input.disk.why_not}}},
                    {"jobs", std::move(jobs)}};
  return text_of(out);
}

std::string to_json(const Job& job, VersionNumber version) {
  return text_of(version_json(job, version));
}

}  // namespace backstay::agent
