#include "agent/redundancy/rebuilder.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "store/needed_files.h"

namespace backstay::agent {

namespace {

Error version_removed() { return Error(Code::again, "the version was removed"); }

}  // namespace

Rebuilder::Rebuilder(ReplicatorWorld world, StripeCoder& stripe_coder, ObjectDirectory& directory,
                     FileEvents& events)
    : world_(world),
      stripe_coder_(stripe_coder),
      directory_(directory),
      events_(events),
      asked_(1 + world.state.clock.wall_ns()) {}

// --- who asks ------------------------------------------------------------------------------------

void Rebuilder::ask(NodeId agent, VersionOfRun version, Rank rank, Done done) {
  const std::uint64_t ticket = asked_.add(agent, std::move(done));
  world_.peers.send(agent, wire::peer::Rebuild{ticket, version.first, version.second, rank});
}

void Rebuilder::on(NodeId from, const wire::peer::Rebuilt& rebuilt) {
  const auto done = asked_.take(from, rebuilt.ticket);
  if (!done) return;
  if (rebuilt.code == Code::ok) {
    (*done)(rebuilt.node);
  } else {
    (*done)(Error(rebuilt.code, fmt::format("node {}: {}", from, rebuilt.message)));
  }
}

bool Rebuilder::on(NodeId from, const wire::peer::Kept& kept) {
  if (from != world_.peers.self()) return false;
  const auto work = work_.find({kept.version, kept.run, kept.node});
  if (work == work_.end() || !work->second.keeper) return false;
  work->second.ended = kept.code == Code::ok ? Status() : Status(Error(kept.code, kept.message));
  return true;
}

void Rebuilder::lost(NodeId peer, const Error& why) {
  const Error error(Code::agent_lost, fmt::format("node {}: {}", peer, why.message()));
  for (const Done& done : asked_.take_all(peer)) done(error);
}

// --- who rebuilds --------------------------------------------------------------------------------

void Rebuilder::on(NodeId from, const wire::peer::Rebuild& rebuild) {
  const VersionOfRun version{rebuild.version, rebuild.run};
  const Asker asker{from, rebuild.ticket, rebuild.rank};
  // Another agent may have asked for it before; but not where it was found damaged: then only
  // others are asked.
  if (const auto node = directory_.held().node_with(version, rebuild.rank)) {
    return answer(asker, {}, *node);
  }
  const auto parity = directory_.held().parity_with(version, rebuild.rank);
  if (!parity) {
    return answer(asker, Error(Code::not_found, "there is no parity of that rank's group here"), 0);
  }
  const bool is_read = reading_.contains(*parity);
  reading_[*parity].push_back(asker);
  if (is_read) return;
  world_.reader.read_manifest(world_.peers.self(), *parity,
                              callback_guard_([this, file = *parity](const Result<Buffer>& bytes) {
                                got_parity(file, bytes);
                              }));
}

void Rebuilder::got_parity(const FileOf& parity, const Result<Buffer>& bytes) {
  const std::vector<Asker> askers = std::move(reading_.extract(parity).mapped());
  const auto decode = [&]() -> Result<LivingGroup> {
    if (!bytes.ok()) return bytes.error();
    LivingGroup group;
    BACKSTAY_ASSIGN(group.parity, format::decode_parity_manifest(*bytes));
    BACKSTAY_ASSIGN(group.members, format::decode_members(group.parity));
    group.segments.resize(group.members.size());
    group.parities.resize(group.members.size());
    return group;
  };
  const Result<LivingGroup> group = decode();
  for (const Asker& asker : askers) {
    if (!group.ok()) {
      answer(asker, group.error(), 0);
      continue;
    }
    const auto member = std::ranges::find_if(group->members, [&](const format::Manifest& one) {
      return one.find(asker.rank) != nullptr;
    });
    if (member == group->members.end()) {
      answer(asker, Error(Code::not_found, "the rank is not of that group"), 0);
      continue;
    }
    const FileOf file{parity.version, parity.run, member->node};
    if (const auto known = work_.find(file); known != work_.end()) {
      known->second.askers.push_back(asker);
      continue;
    }
    begin(file, {*group, static_cast<std::uint32_t>(member - group->members.begin()), 0}, asker);
  }
}

// One search and one keeper for all askers.
void Rebuilder::begin(const FileOf& file, Search search, const Asker& asker) {
  Work& work = work_[file];
  work.askers.push_back(asker);
  spdlog::info("rebuilds a lost node's file job={} version={} file_of_node={}", world_.state.name,
               file.version, file.node);
  work.search = std::move(search);
  const auto members = static_cast<std::uint32_t>(work.search.group.members.size());
  for (std::uint32_t member = 0; member < members; ++member) {
    if (work.search.group.members[member].ranks_here().empty())
      continue;  // it is announced to no registrar
    if (member == work.search.lost) {
      look_up(file, member, /*parity=*/true);
    } else {
      look_up(file, member, /*parity=*/false);
    }
  }
}

// By a rank of that member: its segment, or all parity of the group.
void Rebuilder::look_up(const FileOf& file, std::uint32_t member, bool parity) {
  Search& search = work_.at(file).search;
  ++search.lookups;
  const Rank rank = search.group.members[member].ranks_here().front();
  directory_.lookup(
      {file.version, file.run}, rank,
      callback_guard_(
          [this, file, member, parity](const Result<std::vector<wire::peer::Holder>>& all) {
            Work& work = work_.at(file);
            if (!all.ok()) work.search.unknown = all.error();
            LivingGroup& group = work.search.group;
            for (const auto& holder : all.ok() ? *all : std::vector<wire::peer::Holder>()) {
              for (std::uint32_t i = 0; i < group.members.size(); ++i) {
                if (group.members[i].node != holder.node) continue;
                if (parity) group.parities[i].push_back(holder.agent);
                if (!parity && i == member) group.segments[i].push_back(holder.agent);
              }
            }
            if (--work.search.lookups > 0) return;
            if (!work.removed) return make_needed(file, work);
            work.ended = Status(version_removed());
          }),
      parity);
}

// What it needs lies beside it: files of the same node in older versions, which are as lost as it
// is. One after the other; where one is on this node, it is taken.
void Rebuilder::make_needed(const FileOf& file, Work& work) {
  if (!work.needs) work.needs = store::needed_files(work.search.group.members[work.search.lost]);
  const HeldFiles& held = directory_.held();
  std::erase_if(*work.needs, [&](const FileOf& one) { return held.find(one) != nullptr; });
  if (work.needs->empty()) return make(file, work);
  const FileOf needed = work.needs->front();
  ask(world_.peers.self(), {needed.version, needed.run}, work.askers.front().rank,
      callback_guard_([this, file, needed](const Result<NodeId>& made) {
        Work& of = work_.at(file);
        if (of.removed) {
          of.ended = Status(version_removed());
        } else if (made.ok() && *made == needed.node && directory_.held().find(needed)) {
          make_needed(file, of);
        } else {
          const std::string why =
              made.ok() ? "lies in another node's file" : made.error().message();
          of.ended = Status(Error(made.ok() ? Code::lost : made.error().code(),
                                  fmt::format("it needs version {}: {}", needed.version, why)));
        }
      }));
}

void Rebuilder::make(const FileOf& file, Work& work) {
  const NodeId self = world_.peers.self();
  const format::Manifest& lost = work.search.group.members[work.search.lost];
  wire::peer::Keep keep;
  keep.version = file.version;
  keep.run = file.run;
  keep.node = file.node;
  keep.segment_bytes = lost.segment_bytes;
  keep.nodes = lost.nodes;
  keep.ranks = lost.ranks;
  keep.holders = {self};
  work.reader = std::make_unique<DegradedReader>(stripe_coder_, std::move(work.search.group),
                                                 work.search.lost, self);
  ReplicatorWorld world{world_.state, world_.peers, *work.reader, world_.peer_files,
                        world_.keeping};
  work.keeper = std::make_unique<ReplicaReceiver>(
      world, 0, [this](const wire::peer::Keep&, const HeldFile& held) { events_.kept(held); });
  work.keeper->keep(self, keep);
}

std::uint64_t Rebuilder::pump() {
  std::uint64_t next = no_deadline;
  for (auto at = work_.begin(); at != work_.end();) {
    auto& [file, work] = *at;
    if (work.keeper) next = std::min(next, work.keeper->pump());
    if (!work.ended) {
      ++at;
      continue;
    }
    const Status status = outcome(work);
    if (status.ok()) {
      world_.state.record("rebuilt", {{"version", file.version}, {"of", file.node}});
      spdlog::info("rebuilt a lost node's file job={} version={} file_of_node={}",
                   world_.state.name, file.version, file.node);
      world_.state.notes.push_back(fmt::format(
          "version {} came back without node {}, out of parity: another loss may lose it "
          "until the next version is protected",
          file.version, file.node));
    }
    const NodeId node = file.node;
    const std::vector<Asker> askers = std::move(work.askers);
    at = work_.erase(at);
    for (const Asker& asker : askers) answer(asker, status, node);
  }
  return next;
}

// Too few blocks were found, but who knows of others could not be asked: it may be there all the
// same.
Status Rebuilder::outcome(const Work& work) {
  const Status& ended = *work.ended;
  const auto& unknown = work.search.unknown;
  if (ended.ok() || ended.error().code() != Code::lost || !unknown) return ended;
  return Error(unknown->code(),
               fmt::format("{}; without it {}", unknown->message(), ended.error().message()));
}

void Rebuilder::removed(VersionNumber version) {
  for (auto& [file, askers] : reading_) {
    if (file.version != version) continue;
    for (const Asker& asker : std::exchange(askers, {})) answer(asker, version_removed(), 0);
  }
  for (auto& [file, work] : work_) {
    if (file.version != version) continue;
    work.removed = true;
    if (work.keeper) work.keeper->removed(version);
  }
}

void Rebuilder::answer(const Asker& asker, const Status& status, NodeId node) {
  wire::peer::Rebuilt rebuilt{asker.ticket, Code::ok, "", node};
  if (!status.ok()) {
    rebuilt.code = status.error().code();
    rebuilt.message = status.error().message();
  }
  world_.peers.send(asker.agent, std::move(rebuilt));
}

}  // namespace backstay::agent
