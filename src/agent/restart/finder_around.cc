#include "agent/restart/finder_around.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "agent/disk/links.h"
#include "agent/group/remote_files.h"
#include "base/log.h"

namespace backstay::agent {

using wire::peer::Holder;

namespace {

// How often a place is read before the next one is.
int tries_at(Place place, Code code) {
  const bool lasting = code == Code::not_found || code == Code::again;  // it is not there
  const bool disk = place == Place::local || place == Place::durable;
  return disk && !lasting ? 2 : 1;
}

constexpr std::size_t rebuilders_max = 3;  // asked one after the other

}  // namespace

FinderAround::FinderAround(JobState& state, std::vector<Rank> ranks, VersionOfRun version)
    : state_(state), version_(version), searches_(ranks.size()) {
  for (std::size_t i = 0; i < ranks.size(); ++i) searches_[i].rank = ranks[i];
  if (version_.second == 0) version_.second = known_run();
  for (Search& search : searches_) look_here(search);
}

// Somebody who cannot be reached may have it all the same: nothing else that is heard takes that
// back.
void FinderAround::Search::note(const Error& trouble) {
  why = trouble.message();
  if (code != Code::agent_lost) code = trouble.code();
}

RunId FinderAround::known_run() const {
  const VersionNumber number = version_.first;
  if (const MemoryVersion* held = state_.whole_in_memory(number)) return held->info.run;
  if (const VersionRow* row = state_.versions.find(number)) {
    if (row->good()) return row->disk->record.run;
    if (row->durable()) return row->shared->record.run;
  }
  RunId run = state_.run;
  if (state_.around == nullptr) return run;
  for (const auto& [file, held] : state_.around->directory.held().all()) {
    if (file.version == number && held.record) run = file.run;
  }
  return run;
}

void FinderAround::look_here(Search& search) {
  const auto [number, run] = version_;
  const MemoryVersion* held = state_.whole_in_memory(number);
  if (held != nullptr && held->info.run == run && held->object_bytes.count(search.rank) != 0) {
    search.left.push_back({Place::pool, 0, state_.node});
  }
  if (state_.around == nullptr) return;
  const auto node = state_.around->directory.held().node_with(version_, search.rank);
  if (!node) return;
  // One that is in doubt too: where another node has the record, the version exists.
  const StoredVersion* stored = state_.on_disk(number);
  const bool store_knows = stored != nullptr && stored->record.run == run && stored->damage.empty();
  search.left.push_back(store_knows ? Source{Place::local, 0, *node}
                                    : Source{Place::replica, state_.node, *node});
}

void FinderAround::find(Done done) {
  done_ = std::move(done);
  for (Search& search : searches_) {
    const bool evicted = !search.left.empty() && search.left.front().place == Place::pool &&
                         state_.whole_in_memory(version_.first) == nullptr;
    if (evicted) search.left.pop_front();
    if (search.left.empty() && !search.asked) {
      look_around(search);
    } else if (wants_rebuilding(search)) {
      look_for_parity(search);
    } else if (has_nothing(search) && !search.rebuilders.empty()) {
      ++lookups_;
      rebuild(search);
    }
  }
  if (lookups_ == 0) answer();
}

void FinderAround::look_around(Search& search) {
  search.asked = true;
  if (state_.around == nullptr) return take(search, std::vector<Holder>());
  ++lookups_;
  state_.around->directory.lookup(version_, search.rank,
                                  [this, &search, alive = std::weak_ptr<int>(alive_)](
                                      const Result<std::vector<Holder>>& holders) {
                                    if (alive.expired()) return;
                                    take(search, holders);
                                    if (wants_rebuilding(search)) look_for_parity(search);
                                    if (--lookups_ == 0) answer();
                                  });
}

// Nobody has it any more as it was written.
bool FinderAround::has_nothing(const Search& search) const {
  return search.left.empty() || search.left.front().place == Place::durable;
}

bool FinderAround::wants_rebuilding(const Search& search) const {
  return has_nothing(search) && search.asked && !search.asked_parity && state_.around != nullptr &&
         state_.around->rebuild;
}

void FinderAround::look_for_parity(Search& search) {
  search.asked_parity = true;
  ++lookups_;
  const auto found = [this, &search, alive = std::weak_ptr<int>(alive_)](
                         const Result<std::vector<Holder>>& holders) {
    if (alive.expired()) return;
    if (!holders.ok()) search.note(holders.error());
    std::set<NodeId> agents;  // in an order that is the same for all ranks of one node, so that one
                              // of them rebuilds it
    for (const Holder& holder : holders.ok() ? *holders : std::vector<Holder>()) {
      agents.insert(holder.agent);
    }
    for (const NodeId damaged : search.holders) agents.erase(damaged);
    search.rebuilders.assign(agents.begin(), agents.end());
    if (search.rebuilders.size() > rebuilders_max) search.rebuilders.resize(rebuilders_max);
    rebuild(search);
  };
  state_.around->directory.lookup(version_, search.rank, found, /*parity=*/true);
}

void FinderAround::rebuild(Search& search) {
  if (search.rebuilders.empty() || state_.around == nullptr) {
    if (--lookups_ == 0) answer();
    return;
  }
  const NodeId agent = search.rebuilders.front();
  search.rebuilders.pop_front();
  state_.around->rebuild(
      agent, version_, search.rank,
      [this, &search, agent, alive = std::weak_ptr<int>(alive_)](const Result<NodeId>& node) {
        if (alive.expired()) return;
        if (!node.ok()) {
          const Code code = node.error().code();
          const bool tells = code == Code::lost || code == Code::agent_lost;
          search.note(tells ? node.error() : Error(search.code, node.error().message()));
          return rebuild(search);
        }
        search.left.push_front({Place::replica, agent, *node});
        // Holders of damaged copies found no good source earlier; there is one now.
        for (const auto& [holder, file] : search.doubted) {
          if (file.node != *node || holder == agent || !state_.around->damaged) continue;
          state_.around->damaged(holder, file, Error(Code::corrupt, "it was made again elsewhere"));
        }
        if (--lookups_ == 0) answer();
      });
}

void FinderAround::take(Search& search, const Result<std::vector<Holder>>& holders) {
  if (holders.ok()) {
    for (const Holder& holder : *holders) {
      if (holder.agent == state_.node) continue;  // looked at already
      search.left.push_back({Place::replica, holder.agent, holder.node});
    }
  } else {
    search.note(holders.error());
  }
  if (durable() != nullptr) search.left.push_back({Place::durable, 0, Source::any_node});
}

const StoredVersion* FinderAround::durable() const {
  const VersionRow* row = state_.versions.find(version_.first);
  const bool there = row != nullptr && row->durable() && row->shared->record.run == version_.second;
  return there ? &*row->shared : nullptr;
}

bool FinderAround::looks_again() {
  const bool blockers =
      std::ranges::any_of(searches_, [](const Search& s) { return s.left.empty(); });
  if (!blockers || looked_again_ || durable() != nullptr || !state_.durable_settings.on()) {
    return false;
  }
  looked_again_ = true;
  ++state_.durable_looks;
  state_.store.post_drain(Command(ScanJob{.clean = false}));
  return true;
}

void FinderAround::durable_scanned() {
  if (!looked_again_ || !done_) return;
  for (Search& search : searches_) {
    if (search.left.empty() && durable() != nullptr) {
      search.left.push_back({Place::durable, 0, Source::any_node});
    }
  }
  answer();
}

void FinderAround::answer() {
  if (looks_again()) return;
  Found found;
  found.version = version_;
  if (const StoredVersion* stored = durable()) {
    found.nodes = stored->record.nodes;
    found.ranks = stored->record.ranks;
  }
  for (const Search& search : searches_) {
    if (search.left.empty()) return std::exchange(done_, nullptr)(nothing_of(search));
    found.sources.push_back(search.left.front());
  }
  std::exchange(done_, nullptr)(found);
}

Finder::Nothing FinderAround::nothing_of(const Search& search) const {
  if (search.holders.empty() && search.why.empty()) {
    return {Code::not_found,
            fmt::format("rank {}'s object is on no node that is left", search.rank)};
  }
  const std::string where =
      search.holders.empty()
          ? std::string()
          : fmt::format(" (it was on node{} {})", search.holders.size() > 1 ? "s" : "",
                        fmt::join(search.holders, ", "));
  // Not damage where somebody who cannot be reached may have a good one: no older version may be
  // taken in its place.
  const bool is_damage = search.damage && search.code != Code::agent_lost;
  return {is_damage ? Code::corrupt : search.code,
          fmt::format("rank {}'s object can be read on no node that is left{}: {}", search.rank,
                      where, search.why)};
}

void FinderAround::failed(std::size_t participant, const Source& source, const Error& why) {
  drop(searches_.at(participant), source, why);
}

std::optional<Source> FinderAround::instead(std::size_t participant, const Source& source,
                                            const Error& why) {
  Search& search = searches_.at(participant);
  const auto& left = search.left;
  const bool same_bytes = source.place == Place::replica && left.size() > 1 && left[0] == source &&
                          left[1].place == Place::replica && left[1].node == source.node;
  if (!same_bytes) return std::nullopt;
  drop(search, source, why);
  return search.left.front();
}

void FinderAround::drop(Search& search, const Source& source, const Error& why) {
  if (search.left.empty() || search.left.front() != source) return;
  const bool out_of_reach = why.code() == Code::agent_lost;
  search.note(out_of_reach ? why : Error(search.code, why.message()));
  const auto [number, run] = version_;
  const bool damage = is_damage(why.code()) && why.code() != Code::not_found;
  const std::string text = fmt::format("version {}, rank {}, {}: {}", number, search.rank,
                                       place_text(source), search.why);
  if (source.place == Place::pool) state_.release(number);
  if (++search.failures[source] < tries_at(source.place, why.code())) {
    spdlog::warn("reads it a second time job={} {}", state_.name, text);
    return;
  }
  spdlog::warn("reads it elsewhere, if anywhere job={} {}", state_.name, text);
  state_.record("unreadable", {{"version", number},
                               {"rank", search.rank},
                               {"why", why.message()},
                               {"from", name_of(source.place)}});
  search.left.pop_front();
  search.damage = search.damage || damage;
  if (source.place == Place::durable) return give_up_durable(why);
  const bool on_a_disk = source.place == Place::local || source.place == Place::replica;
  if (!on_a_disk) return;
  const NodeId holder = source.place == Place::local ? state_.node : source.holder;
  search.holders.push_back(holder);
  if (damage && state_.around != nullptr && state_.around->damaged) {
    search.doubted.emplace_back(holder, FileOf{number, run, source.node});
    state_.around->damaged(holder, {number, run, source.node}, why);
  }
}

// Read twice, or not there: the parts of all nodes must be.
void FinderAround::give_up_durable(const Error& why) {
  const VersionRow* row = state_.versions.find(version_.first);
  if (!is_damage(why.code()) || row == nullptr || !row->shared) return;
  if (!row->shared->damage.empty()) return;
  state_.versions.quarantined(version_.first, Where::shared, why.message());
  state_.record(
      "set_aside",
      {{"version", version_.first}, {"why", why.message()}, {"from", name_of(Place::durable)}});
  state_.store.post_drain(Command(SetAside{version_.first, why.message()}));
}

std::string FinderAround::place_text(const Source& source) const {
  if (source.place == Place::replica) return fmt::format("on node {}", source.holder);
  return source.place == Place::local ? "on the disk" : name_of(source.place);
}

}  // namespace backstay::agent
