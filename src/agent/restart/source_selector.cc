#include "agent/restart/source_selector.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/disk/links.h"
#include "agent/group/remote_files.h"
#include "base/check.h"
#include "base/log.h"

namespace backstay::agent {

using wire::peer::Holder;

namespace {

constexpr std::size_t rebuilders_max = 3;  // asked one after the other

}  // namespace

const char* name_of(Place place) {
  switch (place) {
    case Place::pool: return "pool";
    case Place::local: return "local";
    case Place::replica: return "replica";
    case Place::durable: return "durable";
  }
  return "?";
}

SourceSelector::SourceSelector(JobState& state, const std::vector<Rank>& ranks,
                               const wire::Restart& wanted)
    : state_(state), choice_(state, wanted), searches_(ranks.size()) {
  for (std::size_t i = 0; i < ranks.size(); ++i) searches_[i].rank = ranks[i];
}

// An agent that cannot be reached may still have it: no other answer takes that back.
void SourceSelector::Search::note(const Error& trouble) {
  why = trouble.message();
  if (code != Code::agent_lost) code = trouble.code();
}

// False: there is none left.
bool SourceSelector::begin_version() {
  BACKSTAY_CHECK(lookups_ == 0);
  const auto version = choice_.next();
  if (!version) return false;
  version_ = *version;
  troubles_.clear();
  elsewhere_nodes_ = 0;
  for (Search& search : searches_) {
    search = Search{.rank = search.rank};
    look_here(search);
  }
  return true;
}

void SourceSelector::look_here(Search& search) {
  const auto [number, run] = version_;
  const MemoryVersion* held = state_.whole_in_memory(number);
  if (held != nullptr && held->info.run == run && held->object_bytes.count(search.rank) != 0) {
    search.left.push_back({Place::pool, 0, state_.node});
  }
  if (alone() && local() != nullptr) search.left.push_back({Place::local, 0, Source::any_node});
  if (state_.around == nullptr) return;
  const auto node = state_.around->directory().held().node_with(version_, search.rank);
  if (!node) return;
  // One that is in doubt too: where another node has the record, the version exists.
  const StoredVersion* stored = state_.on_disk(number);
  const bool store_knows = stored != nullptr && stored->record.run == run && stored->damage.empty();
  search.left.push_back(store_knows ? Source{Place::local, 0, *node}
                                    : Source{Place::replica, state_.node, *node});
}

void SourceSelector::find(Done done) {
  BACKSTAY_CHECK(!done_ && done);
  done_ = std::move(done);
  if (version_.first == 0 && !begin_version()) {
    return std::exchange(done_, nullptr)(choice_.nothing());
  }
  search();
}

void SourceSelector::search() {
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

void SourceSelector::look_around(Search& search) {
  search.asked = true;
  if (state_.around == nullptr) return take(search, std::vector<Holder>());
  ++lookups_;
  state_.around->directory().lookup(version_, search.rank,
                                    [this, &search, alive = std::weak_ptr<int>(alive_)](
                                        const Result<std::vector<Holder>>& holders) {
                                      if (alive.expired()) return;
                                      take(search, holders);
                                      if (wants_rebuilding(search)) look_for_parity(search);
                                      if (--lookups_ == 0) answer();
                                    });
}

// No holder has it any more as it was written.
bool SourceSelector::has_nothing(const Search& search) const {
  return search.left.empty() || search.left.front().place == Place::durable;
}

bool SourceSelector::wants_rebuilding(const Search& search) const {
  return has_nothing(search) && search.asked && !search.asked_parity && state_.around != nullptr;
}

void SourceSelector::look_for_parity(Search& search) {
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
  state_.around->directory().lookup(version_, search.rank, found, /*parity=*/true);
}

void SourceSelector::rebuild(Search& search) {
  BACKSTAY_CHECK(lookups_ > 0);  // this one
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
          if (file.node != *node || holder == agent) continue;
          state_.around->damaged(holder, file, Error(Code::corrupt, "it was made again elsewhere"));
        }
        if (--lookups_ == 0) answer();
      });
}

void SourceSelector::take(Search& search, const Result<std::vector<Holder>>& holders) {
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

// The version as the disk of a run of one node has it; null: not good there.
const StoredVersion* SourceSelector::local() const {
  const VersionRow* row = state_.versions.find(version_.first);
  return row != nullptr && row->good() && row->is_of(version_.second) ? &*row->disk : nullptr;
}

const StoredVersion* SourceSelector::durable() const {
  const VersionRow* row = state_.versions.find(version_.first);
  const bool there = row != nullptr && row->durable() && row->shared->record.run == version_.second;
  return there ? &*row->shared : nullptr;
}

bool SourceSelector::looks_again() {
  const bool lacking =
      std::ranges::any_of(searches_, [](const Search& s) { return s.left.empty(); });
  if (!lacking || looked_again_ || durable() != nullptr || !state_.durable_settings.on()) {
    return false;
  }
  looked_again_ = listing_ = true;
  ++state_.durable_looks;
  state_.store.post_drain(Command(ScanJob{.clean = false}));
  return true;
}

void SourceSelector::durable_scanned() {
  if (!std::exchange(listing_, false)) return;  // listed for another reason
  for (Search& search : searches_) {
    if (search.left.empty() && durable() != nullptr) {
      search.left.push_back({Place::durable, 0, Source::any_node});
    }
  }
  answer();
}

void SourceSelector::answer() {
  BACKSTAY_CHECK(lookups_ == 0 && !listing_ && done_);
  if (looks_again()) return;
  Found found;
  found.version = version_;
  const StoredVersion* stored = durable();
  if (stored == nullptr && alone()) stored = local();
  if (stored != nullptr) {
    found.nodes = stored->record.nodes;
    found.ranks = stored->record.ranks;
  }
  for (const Search& search : searches_) {
    if (search.left.empty()) return give_up_version(search);
    found.sources.push_back(search.left.front());
  }
  std::exchange(done_, nullptr)(found);
}

void SourceSelector::give_up_version(const Search& search) {
  if (!choice_.goes_on()) return std::exchange(done_, nullptr)(nothing_of(search));
  const Code code = search.damage && !search.passes ? Code::corrupt : Code::io;
  choice_.given_up(Error(code, search.why), elsewhere_nodes_);
  if (begin_version()) return this->search();
  std::exchange(done_, nullptr)(choice_.nothing());
}

Error SourceSelector::nothing_of(const Search& search) const {
  if (search.holders.empty() && search.why.empty()) {
    return {Code::not_found,
            fmt::format("rank {}'s object is on no node that is left", search.rank)};
  }
  const std::string where =
      search.holders.empty()
          ? std::string()
          : fmt::format(" (it was on node{} {})", search.holders.size() > 1 ? "s" : "",
                        fmt::join(search.holders, ", "));
  // Not damage where an agent that cannot be reached may have a good one: no older version may be
  // taken in its place.
  const bool damaged = search.damage && search.code != Code::agent_lost;
  return {damaged ? Code::corrupt : search.code,
          fmt::format("rank {}'s object can be read on no node that is left{}: {}", search.rank,
                      where, search.why)};
}

void SourceSelector::failed(std::size_t participant, const Source& source, const Error& why) {
  drop(searches_.at(participant), source, why);
}

std::optional<Source> SourceSelector::instead(std::size_t participant, const Source& source,
                                              const Error& why) {
  Search& search = searches_.at(participant);
  const auto& left = search.left;
  const bool same_bytes = source.place == Place::replica && left.size() > 1 && left[0] == source &&
                          left[1].place == Place::replica && left[1].node == source.node;
  if (!same_bytes) return std::nullopt;
  drop(search, source, why);
  return search.left.front();
}

// Its bytes are good or bad for all participants alike: there is nobody who makes the file of one
// node again there.
bool SourceSelector::is_whole(Place place) const {
  return place == Place::durable || (place == Place::local && alone());
}

std::uint32_t SourceSelector::nodes_of_version() const {
  const StoredVersion* stored = local();
  return stored == nullptr ? 1 : stored->record.nodes;
}

// How often a place is read before the next one is.
int SourceSelector::tries_at(Place place, Code code) const {
  const bool disk = place == Place::local || place == Place::durable;
  const bool missing = code == Code::not_found && !(alone() && nodes_of_version() == 1);
  return disk && !missing && code != Code::again ? 2 : 1;
}

void SourceSelector::drop(Search& search, const Source& source, const Error& why) {
  if (search.left.empty() || search.left.front() != source) return;
  const bool out_of_reach = why.code() == Code::agent_lost;
  search.note(out_of_reach ? why : Error(search.code, why.message()));
  const VersionNumber number = version_.first;
  const std::string text = fmt::format("version {}, rank {}, {}: {}", number, search.rank,
                                       place_text(source), search.why);
  if (source.place == Place::pool) state_.release(number);
  Trouble& trouble = troubles_[{is_whole(source.place) ? all : search.rank, source}];
  if (trouble.times == 0) trouble.first = why.code();
  if (++trouble.times < tries_at(source.place, why.code())) {
    spdlog::warn("reads it a second time job={} {}", state_.name, text);
    return;
  }
  spdlog::warn("reads it elsewhere, if anywhere job={} {}", state_.name, text);
  if (!alone()) {
    state_.record("unreadable", {{"version", number},
                                 {"rank", search.rank},
                                 {"why", why.message()},
                                 {"from", name_of(source.place)}});
  }
  is_whole(source.place) ? drop_place(source.place, trouble.first, why)
                         : drop_one(search, source, why);
}

void SourceSelector::drop_one(Search& search, const Source& source, const Error& why) {
  const auto [number, run] = version_;
  const bool damage = is_damage(why.code());
  search.left.pop_front();
  search.damage = search.damage || damage;
  if (source.place == Place::pool) return;
  const NodeId holder = source.place == Place::local ? state_.node : source.holder;
  search.holders.push_back(holder);
  if (damage && state_.around != nullptr) {
    search.doubted.emplace_back(holder, FileOf{number, run, source.node});
    state_.around->damaged(holder, {number, run, source.node}, why);
  }
}

void SourceSelector::drop_place(Place place, Code first, const Error& why) {
  BACKSTAY_CHECK(is_whole(place));
  // Only damage that was found both times is for good.
  const bool for_good = store::is_damage_or_gone(why.code()) && store::is_damage_or_gone(first);
  const bool damage = is_damage(why.code()) || (alone() && for_good);
  for (Search& search : searches_) {
    const auto gone =
        std::erase_if(search.left, [place](const Source& s) { return s.place == place; });
    if (gone == 0) continue;
    search.why = why.message();
    search.damage = search.damage || damage;
    search.passes = search.passes || !for_good;
  }
  const Where where = place == Place::durable ? Where::shared : Where::disk;
  if (why.code() == Code::again) return state_.versions.removed(version_.first, where);
  if (place == Place::local && why.code() == Code::not_found && nodes_of_version() > 1) {
    elsewhere_nodes_ = nodes_of_version();  // other nodes had it
    return;
  }
  if (for_good) return quarantine(place, why);
  state_.versions.doubted(version_.first, where, true);
  if (!alone()) return;
  state_.record("skipped",
                {{"version", version_.first}, {"why", why.message()}, {"from", name_of(place)}});
}

void SourceSelector::quarantine(Place place, const Error& why) {
  const VersionNumber version = version_.first;
  const bool shared = place == Place::durable;
  state_.versions.quarantined(version, shared ? Where::shared : Where::disk, why.message());
  state_.record("set_aside",
                {{"version", version}, {"why", why.message()}, {"from", name_of(place)}});
  SetAside mark{version, why.message()};
  if (!shared) return state_.store.post(std::move(mark));
  state_.store.post_drain(Command(std::move(mark)));
}

std::string SourceSelector::place_text(const Source& source) const {
  if (source.place == Place::replica) return fmt::format("on node {}", source.holder);
  return source.place == Place::local ? "on the disk" : name_of(source.place);
}

}  // namespace backstay::agent
