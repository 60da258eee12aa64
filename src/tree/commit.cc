#include "tree/commit.h"

#include <algorithm>

#include "base/check.h"

namespace backstay::tree {

namespace {

Key key_of(Kind kind, RunVersion version) {
  return {static_cast<std::uint32_t>(kind), version.run, version.version};
}

std::uint64_t value_of(Level level) { return static_cast<std::uint64_t>(level); }

bool is_level_of_tree(std::uint64_t value) {
  return value >= value_of(Level::local) && value <= value_of(Level::durable);
}

}  // namespace

void Commit::remember(const Remembered& remembered) {
  if (remembered.recorded >= Level::local) {
    Level& asked = asked_[remembered.version];
    asked = std::max(asked, remembered.recorded);
    floors_.raise_floor(key_of(Kind::held, remembered.version), value_of(remembered.recorded));
    recorded(remembered.version, remembered.recorded);
  }
  if (remembered.version.run == run_ && remembered.held >= Level::local) {
    held(remembered.version.version, remembered.held);
  }
}

void Commit::held(VersionNumber version, Level level) {
  BACKSTAY_CHECK(level >= Level::local);
  floors_.raise_own(key_of(Kind::held, {run_, version}), value_of(level));
}

void Commit::recorded(RunVersion version, Level level) {
  floors_.raise_own(key_of(Kind::recorded, version), value_of(level));
}

Level Commit::announced(RunVersion version) const {
  const std::uint64_t floor = floors_.floor(key_of(Kind::recorded, version));
  return is_level_of_tree(floor) ? static_cast<Level>(floor) : Level::none;
}

Level Commit::held(VersionNumber version) const {
  return static_cast<Level>(floors_.own(key_of(Kind::held, {run_, version})));
}

Level Commit::told(VersionNumber version) const {
  const std::uint64_t told = floors_.told(key_of(Kind::held, {run_, version}));
  return is_level_of_tree(told) ? static_cast<Level>(told) : Level::none;
}

void Commit::risen(const wire::tree::Floor& floor, std::vector<Record>& record,
                   std::vector<Announce>& announce) {
  if (!is_level_of_tree(floor.floor)) return;
  const RunVersion version{floor.key.run, floor.key.number};
  const auto level = static_cast<Level>(floor.floor);
  if (floor.key.kind == static_cast<std::uint32_t>(Kind::recorded)) {
    announce.push_back({version, level});
  } else if (floor.key.kind == static_cast<std::uint32_t>(Kind::held) && asked_[version] < level) {
    asked_[version] = level;
    record.push_back({version, level});
    // A second request for the same record does no harm.
    if (asked_.size() > Floors::keys_max) asked_.erase(asked_.begin());
  }
}

}  // namespace backstay::tree
