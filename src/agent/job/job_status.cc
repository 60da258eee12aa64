#include "agent/job/job_status.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/disk/links.h"
#include "agent/job/buffers_used.h"
#include "agent/job/job.h"
#include "agent/version/blockers.h"
#include "agent/version/why_not.h"
#include "base/machine.h"

namespace backstay::agent {

using nlohmann::json;

std::string text_of(const json& document) {
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

json version_json(const JobState& state, VersionNumber number) {
  const ReportedVersion now = reported(state, number);
  json out = {{"version", number},
              {"level", level_name(now.level)},
              {"bytes", 0},
              {"written_bytes", 0},
              {"captured_ns", 0},
              {"local_ns", 0},
              {"durable_ns", 0},
              {"in_pool", false},
              {"error", now.broken ? now.broken->message : ""}};
  if (const auto at = state.memory.find(number); at != state.memory.end()) {
    out["bytes"] = at->second.bytes();
    out["written_bytes"] = at->second.written_bytes;
    out["captured_ns"] = at->second.captured_ns;
    out["local_ns"] = at->second.local_ns;
    out["in_pool"] = at->second.captured && at->second.whole;
    out["filling"] = !at->second.captured;
  }
  const VersionRow* row = state.versions.find(number);
  if (row != nullptr && row->disk && row->announced != Level::none) {
    out["bytes"] = out["written_bytes"] = row->disk->record.payload_bytes;
    out["captured_ns"] = row->disk->record.captured_ns;
    out["local_ns"] = row->disk->record.committed_ns;
  }
  if (row != nullptr && row->durable()) {
    const format::CommitRecord& record = row->shared->record;
    out["bytes"] = out["written_bytes"] = record.payload_bytes;
    out["captured_ns"] = record.captured_ns;
    out["durable_ns"] = record.committed_ns;
  }
  return out;
}

wire::peer::Seen seen_here(const Job& job, VersionOfRun files_of) {
  const JobState& state = job.state();
  wire::peer::Seen seen;
  seen.host = host_name();
  seen.pid = ::getpid();
  seen.ranks = state.local_ranks;
  seen.connected = static_cast<std::uint32_t>(state.links.size());
  seen.resident_bytes = resident_bytes();
  seen.buffer_bytes = state.pool.buffer_bytes();
  seen.buffers = state.pool.count();
  BuffersUsed used;
  used.count(state);
  seen.busy = used.filled + used.writing;
  const DiskTraffic traffic = state.store.traffic();
  seen.written_bytes = traffic.written_bytes;
  seen.read_bytes = traffic.read_bytes;
  for (const auto& [number, version] : state.memory) {
    if (version.captured) seen.newest = std::max(seen.newest, number);
  }
  for (const auto& [number, row] : state.versions.rows()) {
    if (row.disk && row.disk->damage.empty()) seen.newest = std::max(seen.newest, number);
  }
  if (seen.newest != 0) seen.level = reported(state, seen.newest).level;
  if (const Blocker* blocker = state.versions.newest(state.node)) {
    seen.lacks = line_of(*blocker);
    seen.lacks_level = blocker->level;
    seen.lacks_code = blocker->code;
  }
  if (files_of.first == 0) return seen;
  seen.files = job.files_here(files_of);
  if (seen.files.size() > wire::list_entries_max) seen.files.resize(wire::list_entries_max);
  if (const HeldFile* parity = job.parity_here(files_of)) {
    seen.parity_of = parity->file.node;
    seen.parity_blocks = parity->of.blocks;
    seen.parity_group = parity->of.group;
  }
  return seen;
}

}  // namespace backstay::agent
