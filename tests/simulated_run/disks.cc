// What lies on the disks of a simulated run, held against what was announced.
#include <fmt/format.h>

#include <algorithm>

#include "format/names.h"
#include "simulated_run/run.h"
#include "store/needed_files.h"

namespace backstay::simulated {

FilesHere SimulatedRun::files(HostId host, VersionNumber version) const {
  FilesHere here;
  const std::string folder = local_dir + "/" + format::version_folder("job", version);
  const auto entries = hosts_.at(host).disk->list(folder);
  if (!entries.ok()) return here;
  const auto is_record = [&](const io::Entry& entry) {
    const std::string name = folder + "/" + entry.name;
    return name == format::commit_name(folder, Level::local) ||
           name == format::commit_name(folder, Level::protected_);
  };
  here.recorded = std::ranges::any_of(*entries, is_record);
  for (const io::Entry& entry : *entries) {
    if (const auto node = format::node_of_manifest(entry.name)) {
      if (has_needed(host, folder + "/" + entry.name)) here.segments.insert(*node);
    }
    if (const auto node = format::node_of_parity_manifest(entry.name)) here.parity.insert(*node);
  }
  return here;
}

const std::vector<agent::FileOf>& SimulatedRun::needs_of(HostId host,
                                                         const std::string& manifest) const {
  static const std::vector<agent::FileOf> none;
  const auto bytes = io::read_file(*hosts_.at(host).disk, manifest, format::manifest_bytes_max);
  if (!bytes.ok() || bytes->size() < format::manifest_header_bytes) return none;
  const auto [known, fresh] = needs_.try_emplace(format::manifest_digest(*bytes));
  if (!fresh) return known->second;
  const auto decoded = format::decode_manifest(*bytes);
  if (decoded.ok()) known->second = store::needed_files(*decoded);
  return known->second;
}

// What a file of a node needs lies beside it, each with its own manifest.
bool SimulatedRun::has_needed(HostId host, const std::string& manifest) const {
  const auto& disk = hosts_.at(host).disk;
  return std::ranges::all_of(needs_of(host, manifest), [&](const agent::FileOf& file) {
    const store::FileNames names = store::names_of("job", file);
    return disk->open(local_dir + "/" + names.data, io::Open::read).ok() &&
           disk->open(local_dir + "/" + names.manifest, io::Open::read).ok();
  });
}

// A version whose manifest is there can be read: nothing removes what it needs before it.
void SimulatedRun::check_needs(HostId id) {
  const auto versions = hosts_.at(id).disk->list(local_dir + "/job");
  if (!versions.ok()) return;
  for (const io::Entry& version : *versions) {
    const std::string folder = local_dir + "/job/" + version.name;
    const auto entries = hosts_.at(id).disk->list(folder);
    if (!entries.ok() || !format::version_of_folder(version.name)) continue;
    for (const io::Entry& entry : *entries) {
      const std::string name = folder + "/" + entry.name;
      if (!format::node_of_manifest(entry.name) || has_needed(id, name)) continue;
      std::string missing;
      for (const agent::FileOf& file : needs_of(id, name)) {
        const std::string data = store::names_of("job", file).data;
        if (!hosts_.at(id).disk->open(local_dir + "/" + data, io::Open::read).ok()) {
          missing += (missing.empty() ? "" : ", ") + data;
        }
      }
      fail(fmt::format("host {} has {} and not what it needs: {}", id, name, missing));
    }
  }
}

std::set<HostId> SimulatedRun::all_hosts() const {
  std::set<HostId> all;
  for (const auto& [id, host] : hosts_) all.insert(id);
  return all;
}

// An agent may report a level of the version that the program was restarted from although it has
// nothing of it: then all parts are on the disks of others.
void SimulatedRun::check_restarted(HostId id) {
  const agent::Job& job = hosts_.at(id).agent->job();
  const VersionNumber number = restarted_from_.first;
  if (number == 0 || !job.state().is_gone(number) || job.state().is_durable(number)) return;
  if (job.level_of(number).level < Level::local) return;
  if (std::ranges::any_of(nodes_, [this](HostId node) { return hosts_.count(node) == 0; })) return;
  const auto record = format::commit_name(format::version_folder("job", number), Level::durable);
  if (shared_.open(shared_dir + "/" + record, io::Open::read).ok()) return;
  const auto its_files = [this](HostId host, VersionNumber version) {
    return files(host, version);
  };
  if (promises_.is_whole(restarted_from_, all_hosts(), its_files) ||
      promises_.is_overtaken(restarted_from_, all_hosts(), its_files)) {
    return;
  }
  fail(fmt::format("host {} tells version {} of run {} as local, and a part is on no disk", id,
                   number, restarted_from_.second));
}

// What is told as durable can be read there alone, and so can what it needs.
void SimulatedRun::check_shared(VersionNumber version) {
  const std::string folder = shared_dir + "/" + format::version_folder("job", version);
  const auto entries = shared_.list(folder);
  if (!entries.ok()) return fail(fmt::format("version {} is durable, and is not there", version));
  for (const io::Entry& entry : *entries) {
    if (!format::node_of_manifest(entry.name)) continue;
    const auto bytes =
        io::read_file(shared_, folder + "/" + entry.name, format::manifest_bytes_max);
    if (!bytes.ok()) continue;
    const auto manifest = format::decode_manifest(*bytes);
    if (!manifest.ok()) continue;
    for (const agent::FileOf& file : store::needed_files(*manifest)) {
      const store::FileNames names = store::names_of("job", file);
      const auto record =
          format::commit_name(format::version_folder("job", file.version), Level::durable);
      for (const std::string& name : {names.data, names.manifest, record}) {
        if (shared_.open(shared_dir + "/" + name, io::Open::read).ok()) continue;
        fail(fmt::format("version {} is durable, and {} that it needs is not", version, name));
      }
    }
  }
}

void SimulatedRun::check_disks(HostId changed) {
  check_needs(changed);
  counts_.needing += hosts_.at(changed).agent->take_needing();
  const std::string danger = promises_.endangered(
      all_hosts(), [this](HostId host, VersionNumber version) { return files(host, version); });
  if (!danger.empty()) fail(danger);
}

// What an agent has told others is protected, they may record: it keeps its part until that or a
// newer version is announced, or until it has told the same of a newer one
// (docs/protocol/peers.md).
void SimulatedRun::check_vouched(HostId id, bool changed) {
  Host& host = hosts_.at(id);
  const auto [version, node] = host.agent->vouches_for();
  if (version == 0 || version <= promises_.newest_protected()) {
    host.vouched = 0;
    return;
  }
  if (!changed && host.vouched == version) return;
  const bool there = files(id, version).segments.contains(node);
  if (there) {
    host.vouched = version;
  } else if (host.vouched == version) {
    fail(
        fmt::format("host {} has told that its part of version {} is protected, and has removed it",
                    id, version));
  }
}

// A run that protects nothing keeps what it is to keep, and one version that an earlier run
// protected.
void SimulatedRun::check_room() {
  if (nodes_.size() > 1 || settings_.durable) return;
  const auto at = hosts_.find(nodes_.front());
  if (at == hosts_.end() || !at->second.agent) return;
  const SimulatedAgent& agent = *at->second.agent;
  if (!agent.idle() || agent.retained_for() != run_) return;
  const agent::VersionTable& table = agent.job().state().versions;
  const auto good =
      static_cast<std::uint32_t>(std::ranges::count_if(table.rows(), [&](const auto& entry) {
        const auto& [number, row] = entry;
        return row.good() && table.needed_by({number, row.disk->record.run}) == 0;
      }));
  if (good <= settings_.keep + 1) return;
  fail(fmt::format("{} versions stay on the disk of host {}, which is to keep {}", good,
                   nodes_.front(), settings_.keep));
}

}  // namespace backstay::simulated
