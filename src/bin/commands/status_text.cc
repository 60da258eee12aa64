#include "bin/commands/status_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "base/shorten.h"
#include "bin/parts/print.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

// A member that is missing or of another type counts as 0: an older agent may not know it.
std::uint64_t number(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<std::uint64_t>() : 0;
}

std::string text(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

double part_of(std::uint64_t value, std::uint64_t whole) {
  return whole == 0 ? 0 : std::min(1.0, static_cast<double>(value) / static_cast<double>(whole));
}

std::vector<Json> members_of(const Json& job) {
  const auto found = job.find("members");
  if (found == job.end() || !found->is_array()) return {};  // an older agent
  std::vector<Json> members;
  for (const Json& one : *found) {
    if (one.is_object()) members.push_back(one);
  }
  return members;
}

// The sum over all nodes that have answered.
std::uint64_t connected(const Json& job) {
  const auto members = members_of(job);
  if (members.empty()) return number(job, "connected");
  std::uint64_t sum = 0;
  for (const Json& member : members) sum += number(member, "connected");
  return sum;
}

std::string job_line(const Json& job) {
  std::string line = fmt::format("{}  {} of {} connected", text(job, "job"), connected(job),
                                 count_text(number(job, "ranks"), "rank"));
  if (number(job, "nodes") > 1) line += fmt::format(" on {} nodes", number(job, "nodes"));
  if (job.value("stop_requested", false)) line += "  (asked to stop)";
  return line + "  " + text(job, "dir");
}

// `versions`: the newest first.
std::string finished_line(const Json& job, const std::vector<Json>& versions) {
  std::string line = text(job, "job") + "  finished";
  if (!versions.empty())
    line +=
        fmt::format("; version {} is {}", number(versions[0], "version"), level_text(versions[0]));
  return line + "  " + text(job, "dir");
}

}  // namespace

std::string bar(double part, std::size_t cells) {
  const auto full =
      static_cast<std::size_t>(std::clamp(part, 0.0, 1.0) * static_cast<double>(cells) + 0.5);
  return "[" + std::string(full, '=') + std::string(cells - full, ' ') + "]";
}

std::string level_text(const Json& version) {
  if (!text(version, "error").empty()) return "failed";
  std::string level = text(version, "level");
  const std::uint64_t bytes = number(version, "bytes"), written = number(version, "written_bytes");
  if (level == "local" || level == "protected" || level == "durable" || bytes == 0) return level;
  const std::string what = level == "captured" ? "captured, writing" : "being captured, writing";
  return fmt::format("{} {:.0f} %", what, 100 * part_of(written, bytes));
}

std::string speed_text(const Rates& rates) {
  std::string line = "writing " + rate_text(rates.write_per_s);
  if (rates.disk_write_limit_per_s > 0)
    line += fmt::format(", {:.0f} % of the {} that this disk can",
                        100 * rates.write_per_s / rates.disk_write_limit_per_s,
                        rate_text(rates.disk_write_limit_per_s));
  if (rates.read_per_s > 0) line += "; reading " + rate_text(rates.read_per_s);
  return line;
}

std::vector<std::string> pool_lines(const Json& status) {
  const Json pool = status.value("pool", Json::object());
  const std::uint64_t all = number(pool, "buffers"), bytes = number(pool, "buffer_bytes");
  const std::uint64_t filling = number(pool, "filling"), writing = number(pool, "writing");
  const double busy = part_of(filling + writing, all);
  return {fmt::format("pool {} {:.0f} % of {} busy", bar(busy, 20), 100 * busy,
                      bytes_text(all * bytes)),
          fmt::format("  {} of {}: {} filling, {} writing, {} cached, {} free",
                      count_text(all, "buffer"), bytes_text(bytes), filling, writing,
                      number(pool, "cached"), number(pool, "free"))};
}

std::vector<std::string> disk_lines(const Rates& rates) {
  const std::string now = fmt::format("writing {}, reading {}", rate_text(rates.write_per_s),
                                      rate_text(rates.read_per_s));
  const double limit = rates.disk_write_limit_per_s;
  if (limit <= 0) return {fmt::format("disk {}  (its limit: `backstay probe`)", now)};
  return {fmt::format("disk {} {:.0f} % of the {} that it can write",
                      bar(rates.write_per_s / limit, 20), 100 * rates.write_per_s / limit,
                      rate_text(limit)),
          "  " + now};
}

namespace {

// Cut to the width of a terminal's line.
std::string cut(const std::string& line) { return shortened(line, 80); }

std::string member_line(const Json& member) {
  const std::string state = text(member, "state");
  const std::uint64_t node = number(member, "node");
  if (state != "ok") {
    return cut(
        fmt::format("  {:>4}  {}: {}", node, printable(state), printable(text(member, "why"))));
  }
  const std::uint64_t newest = number(member, "newest");
  return fmt::format("  {:>4}  {:<16.16}  {:>9}  {:>4.0f} %  {:>10}  {}", node,
                     printable(text(member, "host")),
                     fmt::format("{} of {}", number(member, "connected"), number(member, "ranks")),
                     100 * part_of(number(member, "busy"), number(member, "buffers")),
                     bytes_text(number(member, "written_bytes")),
                     newest == 0 ? "-" : fmt::format("{} {}", newest, text(member, "level")));
}

// "failure domains: s0 (0, 2), s1 (1, 3)"; no line if each node fails alone.
void add_domains(const std::vector<Json>& members, std::vector<std::string>& lines) {
  std::map<std::string, std::vector<std::uint64_t>> nodes;
  for (const Json& member : members)
    nodes[text(member, "domain")].push_back(number(member, "node"));
  nodes.erase("");
  std::vector<std::string> domains;
  for (const auto& [domain, of] : nodes)
    domains.push_back(fmt::format("{} ({})", printable(domain), fmt::join(of, ", ")));
  if (domains.empty()) return;
  const std::string all = fmt::format("failure domains: {}", fmt::join(domains, ", "));
  for (std::string& line : wrapped(all, 2, 80)) lines.push_back(std::move(line));
}

// A line for each node of a run on several nodes, and lines about the whole run.
void add_members(const Json& job, std::vector<std::string>& lines) {
  if (number(job, "nodes") > 1) {
    lines.push_back(fmt::format("  {:>4}  {:<16}  {:>9}  {:>6}  {:>10}  {}", "node", "host",
                                "ranks", "pool", "written", "newest version"));
    for (const Json& member : members_of(job)) {
      lines.push_back(member_line(member));
      const std::string blockers = text(member, "lacks");
      if (!blockers.empty()) lines.push_back(cut("        " + printable(blockers)));
    }
    if (const auto more = number(job, "members_left_out"); more > 0)
      lines.push_back(fmt::format("        and {} more", count_text(more, "node")));
    add_domains(members_of(job), lines);
  }
}

// A line for the version, and below it why it failed.
void add_version(const Json& version, std::vector<std::string>& lines) {
  lines.push_back(fmt::format("  version {:>4}  {:>9}  {:<28}  {}", number(version, "version"),
                              bytes_text(number(version, "bytes")), level_text(version),
                              age_text(number(version, "captured_ns"))));
  for (std::string& line : wrapped(printable(text(version, "error")), 4, 80))
    lines.push_back(std::move(line));
}

// What is not at its own path yet; no line where all is.
void add_files(const Json& job, std::vector<std::string>& lines) {
  const auto found = job.find("home");
  if (found == job.end() || !found->is_object()) return;
  const std::uint64_t waiting = number(*found, "waiting"), failed = number(*found, "failed");
  const std::uint64_t kept = number(*found, "kept");
  if (waiting + kept == 0) return;
  std::string line = fmt::format("  captured files: {} waiting, {}", waiting,
                                 bytes_text(number(*found, "waiting_bytes")));
  if (failed > 0) line += fmt::format("; {} of them failed", failed);
  if (kept > 0) line += fmt::format("; {} kept", kept);
  lines.push_back(line);
  if (const std::string now = text(*found, "on_its_way"); !now.empty())
    lines.push_back(cut("    on its way: " + printable(now)));
}

}  // namespace

std::vector<std::string> wrapped(const std::string& text, std::size_t indent, std::size_t columns) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  std::string line(indent, ' ');
  for (std::string word; words >> word;) {
    if (line.size() > indent && line.size() + 1 + word.size() > columns) {
      lines.push_back(std::exchange(line, std::string(indent, ' ')));
    }
    line += (line.size() > indent ? " " : "") + word;
  }
  if (line.size() > indent) lines.push_back(line);
  return lines;
}

namespace {

// Those that run come first: a screen may have no room for all.
std::vector<Json> jobs_of(const Json& status) {
  std::vector<Json> jobs;
  for (const Json& job : status.value("jobs", Json::array())) {
    if (job.is_object()) jobs.push_back(job);
  }
  std::stable_partition(jobs.begin(), jobs.end(),
                        [](const Json& job) { return connected(job) > 0; });
  return jobs;
}

}  // namespace

std::vector<std::string> job_lines(const Json& status, std::size_t versions_max,
                                   std::set<std::string>* said_before) {
  std::vector<std::string> lines;
  std::set<std::string> said_now;
  std::set<std::string>& said = said_before != nullptr ? *said_before : said_now;
  for (const Json& job : jobs_of(status)) {
    std::vector<Json> versions = job.value("versions", std::vector<Json>{});
    std::sort(versions.begin(), versions.end(), [](const Json& a, const Json& b) {
      return number(a, "version") > number(b, "version");
    });
    const bool finished = job.value("finished", false);
    lines.push_back(finished ? finished_line(job, versions) : job_line(job));
    if (versions.size() > versions_max || finished) versions.resize(finished ? 0 : versions_max);
    for (const Json& version : versions) add_version(version, lines);
    if (versions.empty() && !finished) lines.push_back("  no version yet");
    add_files(job, lines);
    if (!finished) add_members(job, lines);
    for (const Json& note : job.value("notes", std::vector<Json>{})) {
      if (!note.is_string() || !said.insert(note.get<std::string>()).second) continue;
      for (std::string& line : wrapped("note: " + printable(note.get<std::string>()), 2, 80))
        lines.push_back(std::move(line));
    }
  }
  return lines;
}

}  // namespace backstay::bin
