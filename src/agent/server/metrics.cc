#include "agent/server/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "agent/job/buffers_used.h"
#include "base/clock.h"
#include "base/machine.h"

namespace backstay::agent {

namespace {

using Labels = std::vector<std::pair<const char*, std::string>>;

// Samples by metric, as the format wants all of one name together under one head.
class MetricsText {
 public:
  void add(const char* name, const char* type, const char* help, const Labels& labels,
           double value) {
    const auto [at, fresh] = places_.try_emplace(name, metrics_.size());
    if (fresh)
      metrics_.push_back(fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type));
    metrics_[at->second] += fmt::format("{}{} {}\n", name, text_of(labels), value);
  }
  std::string text() const {
    std::string all;
    for (const std::string& metric : metrics_) all += metric;
    return all;
  }

 private:
  static std::string text_of(const Labels& labels) {
    std::string text;
    for (const auto& [name, value] : labels) {
      text += fmt::format("{}{}=\"{}\"", text.empty() ? "{" : ",", name, escaped(value));
    }
    return text.empty() ? "" : text + "}";
  }
  static std::string escaped(const std::string& value) {
    std::string text;
    for (const char one : value) {
      if (one == '\\' || one == '"') text += '\\';
      text += one == '\n' ? std::string("\\n") : std::string(1, one);
    }
    return text;
  }

  std::map<std::string, std::size_t> places_;
  std::vector<std::string> metrics_;
};

// Two jobs may have one name, in two folders.
Labels labels_of(const Job& job) { return {{"job", job.name()}, {"dir", job.state().dir}}; }

double seconds(std::uint64_t ns) { return 1e-9 * static_cast<double>(ns); }

void add_agent(const StatusInput& input, MetricsText& page) {
  page.add("backstay_agent_info", "gauge", "The agent's release.", {{"release", BACKSTAY_VERSION}},
           1);
  page.add("backstay_agent_start_time_seconds", "gauge",
           "Start of the agent, since 1970-01-01 UTC.", {},
           seconds(system_clock().wall_ns()) - input.uptime_s);
  page.add("backstay_agent_resident_memory_bytes", "gauge", "Memory of the agent.", {},
           static_cast<double>(resident_bytes()));
  page.add("backstay_disk_written_bytes_total", "counter", "Payload written to the node's disk.",
           {}, static_cast<double>(input.traffic.written_bytes));
  page.add("backstay_disk_read_bytes_total", "counter", "Payload read from the node's disk.", {},
           static_cast<double>(input.traffic.read_bytes));
}

void add_pool(const StatusInput& input, MetricsText& page) {
  BuffersUsed used;
  for (const auto& one : input.jobs) used.count(one.job->state());
  page.add("backstay_pool_bytes", "gauge", "Memory of the pool.", {},
           static_cast<double>(input.pool->bytes()));
  for (const auto& [state, count] :
       {std::pair("free", input.pool->free_count()), std::pair("cached", used.cached),
        std::pair("filling", used.filled), std::pair("writing", used.writing)}) {
    page.add("backstay_pool_buffers", "gauge", "Buffers of the pool by what is in them.",
             {{"state", state}}, count);
  }
}

// The newest version at or above each level, and when it was captured.
void add_newest(const Job& job, MetricsText& page) {
  const JobState& state = job.state();
  std::map<VersionNumber, std::uint64_t> captured;  // when
  for (const auto& [number, row] : state.versions.rows()) {
    captured[number] = (row.disk ? row.disk : row.shared)->record.captured_ns;
  }
  for (const auto& [number, version] : state.memory) {
    if (version.captured) captured[number] = version.captured_ns;
  }
  page.add("backstay_job_versions", "gauge",
           "Versions on this node's disk, in its pool or in the durable directory.", labels_of(job),
           static_cast<double>(captured.size()));
  for (const Level level : {Level::captured, Level::local, Level::protected_, Level::durable}) {
    const auto newest = std::find_if(captured.rbegin(), captured.rend(), [&](const auto& entry) {
      return job.level_of(entry.first).level >= level;
    });
    if (newest == captured.rend()) continue;
    Labels labels = labels_of(job);
    labels.emplace_back("level", level_name(level));
    page.add("backstay_job_newest_version", "gauge", "Newest version with at least this level.",
             labels, static_cast<double>(newest->first));
    page.add("backstay_job_newest_version_time_seconds", "gauge",
             "When the newest version of this level was captured, since 1970-01-01 UTC.", labels,
             seconds(newest->second));
  }
}

void add_events(const Job& job, MetricsText& page) {
  for (const auto& [event, sum] : job.state().counted) {
    Labels labels = labels_of(job);
    labels.emplace_back("event", event);
    page.add("backstay_job_events_total", "counter", "Lines in the event log.", labels,
             static_cast<double>(sum.events));
    if (sum.bytes > 0) {
      page.add("backstay_job_event_bytes_total", "counter", "Bytes that these events were about.",
               labels, static_cast<double>(sum.bytes));
    }
    if (sum.seconds > 0) {
      page.add("backstay_job_event_seconds_total", "counter", "Seconds that they took.", labels,
               sum.seconds);
    }
  }
}

void add_job(const Job& job, MetricsText& page) {
  const JobState& state = job.state();
  const Labels labels = labels_of(job);
  page.add("backstay_job_nodes", "gauge", "Nodes of the job's run.", labels, state.nodes);
  page.add("backstay_job_lost_nodes", "gauge", "Nodes of the run that are taken for dead.", labels,
           static_cast<double>(state.versions.members_lost().count()));
  page.add("backstay_job_ranks", "gauge", "Ranks of the job's run.", labels, state.ranks);
  page.add("backstay_job_connected_ranks", "gauge", "Ranks of this node that are connected.",
           labels, static_cast<double>(state.links.size()));
  add_newest(job, page);
  add_events(job, page);
}

}  // namespace

std::string to_metrics(const StatusInput& input) {
  MetricsText page;
  add_agent(input, page);
  add_pool(input, page);
  for (const auto& one : input.jobs) add_job(*one.job, page);
  return page.text();
}

}  // namespace backstay::agent
