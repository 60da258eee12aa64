#include "agent/restart/finder_here.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "agent/disk/links.h"
#include "base/log.h"

namespace backstay::agent {

const char* name_of(Place place) {
  switch (place) {
    case Place::pool: return "pool";
    case Place::local: return "local";
    case Place::replica: return "replica";
    case Place::durable: return "durable";
  }
  return "?";
}

// The nearest place that has the version and was not tried in vain.
std::optional<Place> FinderHere::place_of(VersionNumber number) const {
  const VersionRow* row = state_.versions.find(number);
  const MemoryVersion* held = state_.whole_in_memory(number);
  const bool in_pool = held != nullptr && held->info.nodes == 1;  // else only in part
  const std::pair<Place, bool> places[] = {{Place::pool, in_pool},
                                           {Place::local, row != nullptr && row->good()},
                                           {Place::durable, row != nullptr && row->durable()}};
  for (const auto& [place, there] : places) {
    if (there && tried_.count({number, place}) == 0) return place;
  }
  return std::nullopt;
}

namespace {

Where where_of(Place place) { return place == Place::durable ? Where::shared : Where::disk; }

}  // namespace

// What users see of it there; null: nothing.
const StoredVersion* FinderHere::stored_at(VersionNumber number, Place place) const {
  const VersionRow* row = state_.versions.find(number);
  if (row == nullptr) return nullptr;
  if (place == Place::durable) return row->shared ? &*row->shared : nullptr;
  return row->is_listed() ? &*row->disk : nullptr;
}

void FinderHere::find(Done done) {
  const std::set<VersionNumber> all = candidates();
  if (wanted_ != 0 && all.count(wanted_) == 0) return done(not_wanted());
  if (all.empty()) return done(nothing());
  const VersionNumber version = wanted_ != 0 ? wanted_ : *all.rbegin();
  done(at(version, *place_of(version)));
}

std::set<VersionNumber> FinderHere::candidates() {
  std::set<VersionNumber> known;
  for (const auto& [number, version] : state_.memory) known.insert(number);
  for (const Place place : {Place::local, Place::durable}) {
    for (const auto& [number, row] : state_.versions.rows()) {
      const StoredVersion* stored = stored_at(number, place);
      if (stored == nullptr) continue;
      known.insert(number);
      if (!stored->good() && damage_.empty()) {
        damage_ = fmt::format("version {}: {}", number, stored->damage);
      }
    }
  }
  if (below_ != 0) known.erase(known.lower_bound(below_), known.end());
  std::erase_if(known, [this](VersionNumber number) { return !place_of(number); });
  return known;
}

// What is `lacking` lies on other nodes.
Finder::Nothing FinderHere::not_here(const std::string& lacking) const {
  return {Code::not_found,
          fmt::format("{} of job {} can be brought back from this node alone; {}; start the job on "
                      "nodes that have the other parts or copies of them, or, where parity is "
                      "kept, on this one and any second one, which may be empty",
                      lacking, state_.name, damage_)};
}

Finder::Nothing FinderHere::not_wanted() const {
  if (elsewhere_) return not_here(fmt::format("not all of version {}", wanted_));
  const bool hurt = tried_.lower_bound({wanted_, Place::pool}) !=
                        tried_.lower_bound({wanted_ + 1, Place::pool}) ||
                    stored_at(wanted_, Place::local) != nullptr ||
                    stored_at(wanted_, Place::durable) != nullptr;
  return {hurt ? Code::corrupt : Code::not_found,
          fmt::format("version {} of job {} {}", wanted_, state_.name,
                      hurt ? "is damaged: " + damage_
                           : fmt::format("does not exist; `backstay ls {}` lists what there is",
                                         state_.name))};
}

Finder::Nothing FinderHere::nothing() const {
  if (state_.durable_error) {  // nobody knows what is there: not the time to begin anew
    return {state_.durable_error->code(), state_.durable_error->message()};
  }
  if (damage_.empty()) return {Code::none, "no version of this job exists yet"};
  if (elsewhere_) return not_here("no version");
  return {Code::corrupt, fmt::format("no version of job {} can be brought back; {}. Run 'backstay "
                                     "verify {}' for the whole list",
                                     state_.name, damage_, state_.name)};
}

Finder::Found FinderHere::at(VersionNumber version, Place place) {
  version_ = version;
  Found found;
  if (place == Place::pool) {
    const VersionInfo& info = state_.memory.at(version).info;
    found = {{version, info.run}, info.nodes, info.ranks, {}};
  } else {
    const format::CommitRecord& record = stored_at(version, place)->record;
    found = {{version, record.run}, record.nodes, record.ranks, {}};
  }
  nodes_ = found.nodes;
  found.sources.assign(participants_, {place, 0, nodes_ > 1 ? Source::any_node : state_.node});
  return found;
}

void FinderHere::failed(std::size_t, const Source& source, const Error& why) {
  const Place place = source.place;
  if (why.code() == Code::again) {  // retention was quicker than we
    state_.versions.removed(version_, where_of(place));
    return;
  }
  damage_ = fmt::format("version {}: {}", version_, why.message());
  if (place == Place::pool) {
    spdlog::warn("damaged in the pool job={} {}", state_.name, damage_);
    state_.release(version_);
    tried_.insert({version_, place});
  } else if (why.code() == Code::not_found && nodes_ > 1) {  // other nodes had it
    spdlog::warn("skips it job={} {}", state_.name, damage_);
    damage_ = fmt::format("version {} was saved on {} nodes", version_, nodes_);
    elsewhere_ = true;
    tried_.insert({version_, place});
  } else if (first_trouble_.emplace(std::pair(version_, place), why.code()).second) {
    spdlog::warn("reads it a second time job={} {}", state_.name, damage_);
  } else {
    give_up(place, why);
  }
}

// It was read twice. Only damage that was found both times is for good.
void FinderHere::give_up(Place place, const Error& why) {
  tried_.insert({version_, place});
  const bool lasting = is_damage(why.code()) && is_damage(first_trouble_.at({version_, place}));
  state_.record(lasting ? "set_aside" : "skipped",
                {{"version", version_}, {"why", why.message()}, {"from", name_of(place)}});
  if (!lasting) {
    spdlog::warn("skips it this time, as it cannot be read job={} {}", state_.name, damage_);
    return state_.versions.doubted(version_, where_of(place), true);
  }
  state_.versions.quarantined(version_, where_of(place), why.message());
  SetAside mark{version_, why.message()};
  if (place != Place::durable) return state_.store.post(std::move(mark));
  state_.store.post_drain(Command(std::move(mark)));
}

}  // namespace backstay::agent
