#include "agent/server/status.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>

#include "agent/disk/links.h"
#include "agent/job/buffers_used.h"
#include "agent/job/job_status.h"
#include "agent/version/warnings.h"
#include "base/machine.h"

namespace backstay::agent {

namespace {

using nlohmann::json;

constexpr std::size_t answer_bytes_max = 60'000;  // of a message's 64 KiB

json silent_json(const MemberSeen& member) {
  const bool lost = member.state == MemberSeen::State::lost;
  return {{"node", member.node}, {"state", lost ? "lost" : "no answer"}, {"why", member.why}};
}

json seen_json(const MemberSeen& member) {
  if (member.state != MemberSeen::State::ok) return silent_json(member);
  const wire::peer::Seen& seen = member.seen;
  return {{"node", member.node},
          {"state", "ok"},
          {"host", seen.host},
          {"pid", seen.pid},
          {"ranks", seen.ranks},
          {"connected", seen.connected},
          {"resident_bytes", seen.resident_bytes},
          {"buffer_bytes", seen.buffer_bytes},
          {"buffers", seen.buffers},
          {"busy", seen.busy},
          {"written_bytes", seen.written_bytes},
          {"read_bytes", seen.read_bytes},
          {"newest", seen.newest},
          {"level", level_name(seen.level)},
          {"lacks", seen.lacks}};
}

json member_json(const Job& job, const MemberSeen& member) {
  json out = seen_json(member);
  out["domain"] = job.domain_of(member.node);
  return out;
}

// Of captured files (docs/protocol/home.md).
json home_json(const JobState::NotHome& home) {
  return {{"waiting", home.waiting},       {"waiting_bytes", home.waiting_bytes},
          {"failed", home.failed},         {"kept", home.kept},
          {"on_its_way", home.on_its_way}, {"warnings", home.warnings}};
}

// What waits for its first try is no news.
std::string home_note(const Job& job) {
  const JobState::NotHome& files = job.state().not_home;
  const std::uint64_t left = files.failed + files.kept;
  if (left == 0) return "";
  return fmt::format("{} captured {} not at {} own path{} yet, `backstay ls {} --files` names {}{}",
                     left, left == 1 ? "file is" : "files are", left == 1 ? "its" : "their",
                     left == 1 ? "" : "s", job.name(), left == 1 ? "it" : "them",
                     files.warnings.empty() ? "" : "; " + files.warnings.back());
}

json cut_json(const std::optional<CutRelay::UnderWay>& cut) {
  if (!cut) return nullptr;
  return {{"cut", cut->cut},
          {"seconds", cut->seconds},
          {"rank", cut->rank ? json(*cut->rank) : json()},
          {"awaits", cut->awaits}};
}

json processes_json(const JobState& state) {
  json out = json::array();
  for (const auto& [rank, link] : state.links) out.push_back({{"rank", rank}, {"pid", link.pid}});
  return out;
}

bool is_finished(const Job& job) { return job.state().finished && !job.runs(); }

std::vector<std::string> notes_of(const Job& job, const std::string& cannot_save,
                                  const std::optional<CutRelay::UnderWay>& cut) {
  auto notes = is_finished(job) ? std::vector<std::string>() : job.state().notes;
  for (const Warning& trouble : warnings(job.state())) {  // versions and members say the rest
    const bool of_durable = trouble.kind == Warning::Kind::durable_unreadable ||
                            trouble.kind == Warning::Kind::not_copied;
    if (of_durable) notes.push_back(trouble.text);
  }
  if (const std::string left = home_note(job); !left.empty()) notes.push_back(left);
  if (!cannot_save.empty()) notes.push_back("it cannot be saved now, because " + cannot_save);
  if (cut) {
    notes.push_back(fmt::format("a cut is under way for {:.1f} s: {}", cut->seconds, cut->awaits));
  }
  return notes;
}

json versions_json(const JobState& state) {
  std::set<VersionNumber> numbers;
  for (const auto& [number, version] : state.memory) numbers.insert(number);
  for (const auto& [number, row] : state.versions.rows()) {
    if (row.is_listed() || row.shared) numbers.insert(number);
  }
  json versions = json::array();
  for (const VersionNumber number : numbers) versions.push_back(version_json(state, number));
  return versions;
}

json job_json(const Job& job, const Gathered* gathered) {
  json members = json::array();
  if (gathered != nullptr) {
    for (const MemberSeen& member : gathered->members) members.push_back(member_json(job, member));
  }
  const std::string cannot_save = job.runs() ? job.state().cannot_save : "";  // not of ended ones
  const auto cut = cut_under_way(job);
  json refused;
  if (const auto& said = job.state().refused) {
    const double age_s =
        static_cast<double>(job.state().clock.monotonic_ns() - said->monotonic_ns) * 1e-9;
    refused = {
        {"code", code_name(said->why.code())}, {"why", said->why.message()}, {"age_s", age_s}};
  }
  return {{"job", job.name()},
          {"dir", job.state().dir},
          {"run", fmt::format("{:016x}", job.state().run)},
          {"node", job.state().node},
          {"nodes", job.state().nodes},
          {"ranks", job.state().ranks},
          {"connected", job.state().links.size()},
          {"processes", processes_json(job.state())},
          {"stop_requested", job.stop_requested()},
          {"finished", is_finished(job)},
          {"refused", std::move(refused)},
          {"home", home_json(job.state().not_home)},
          {"cannot_save", cannot_save.empty() ? json() : json(cannot_save)},
          {"cut", cut_json(cut)},
          {"notes", notes_of(job, cannot_save, cut)},
          {"members", std::move(members)},
          {"members_left_out", gathered != nullptr ? gathered->left_out : 0},
          {"versions", versions_json(job.state())}};
}

json pool_json(const StatusInput& input) {
  BuffersUsed used;
  for (const auto& one : input.jobs) used.count(one.job->state());
  const Pool& pool = *input.pool;
  return {{"bytes", pool.bytes()},           {"buffer_bytes", pool.buffer_bytes()},
          {"buffers", pool.count()},         {"free", pool.free_count()},
          {"cached", used.cached},           {"filling", used.filled},
          {"writing", used.writing},         {"huge_pages", pool.huge_pages()},
          {"touched", pool.touched().load()}};
}

}  // namespace

std::string to_json(const StatusInput& input) {
  json jobs = json::array();
  for (const auto& one : input.jobs) jobs.push_back(job_json(*one.job, one.members));
  json out = {{"release", BACKSTAY_VERSION},
              {"pid", ::getpid()},
              {"uptime_s", input.uptime_s},
              {"socket", input.socket_path},
              {"resident_bytes", resident_bytes()},
              {"pool", pool_json(input)},
              {"metrics", {{"address", input.metrics_at}, {"error", input.metrics_error}}},
              {"disk",
               {{"written_bytes", input.traffic.written_bytes},
                {"read_bytes", input.traffic.read_bytes},
                {"io_uring", input.disk.io_uring},
                {"direct", input.disk.direct},
                {"registered_buffers", input.disk.registered_buffers},
                {"why_not", input.disk.why_not}}},
              {"jobs", std::move(jobs)}};
  std::string text = text_of(out);
  if (text.size() <= answer_bytes_max) return text;
  for (json& job : out["jobs"]) {  // the message has an end: who is seen least of is the others
    job["members_left_out"] = job["members_left_out"].get<std::size_t>() + job["members"].size();
    job["members"].clear();
    job["processes"].clear();
  }
  return text_of(out);
}

namespace {

json parity_json(const wire::peer::Seen& seen) {
  if (seen.parity_blocks == 0) return nullptr;
  return {{"of", seen.parity_of}, {"blocks", seen.parity_blocks}, {"group", seen.parity_group}};
}

}  // namespace

std::string to_json(const format::CommitRecord& version, Level level, const Gathered& gathered) {
  json members = json::array();
  for (const MemberSeen& member : gathered.members) {
    if (member.state != MemberSeen::State::ok) {
      members.push_back(silent_json(member));
    } else {
      members.push_back({{"node", member.node},
                         {"state", "ok"},
                         {"host", member.seen.host},
                         {"files", member.seen.files},
                         {"lacks", member.seen.lacks},
                         {"lacks_level", level_name(member.seen.lacks_level)},
                         {"lacks_code", code_name(member.seen.lacks_code)},
                         {"parity", parity_json(member.seen)}});
    }
  }
  return text_of({{"version", version.version},
                  {"run", fmt::format("{:016x}", version.run)},
                  {"level", level_name(level)},
                  {"nodes", version.nodes},
                  {"members", std::move(members)},
                  {"members_left_out", gathered.left_out}});
}

}  // namespace backstay::agent
