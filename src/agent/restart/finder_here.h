// Which version a node alone brings back, and from where: the newest that is not known to be
// damaged (or the one that was asked for), in the nearest place that has it, the same for all
// participants.
//
// What fails is read a second time, as the trouble may pass. If it does not, damage sets the
// version aside in that place; a read error skips it there for this restore only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "agent/disk/store.h"
#include "agent/restart/finder.h"
#include "agent/version/job_state.h"

namespace backstay::agent {

class FinderHere final : public Finder {
 public:
  // `wanted`: 0: the newest. `below`: 0, or only older ones than this.
  FinderHere(JobState& state, std::size_t participants, VersionNumber wanted, VersionNumber below)
      : state_(state), participants_(participants), wanted_(wanted), below_(below) {}

  void find(Done done) override;
  void failed(std::size_t participant, const Source& source, const Error& why) override;
  std::optional<Source> instead(std::size_t, const Source&, const Error&) override { return {}; }

 private:
  std::set<VersionNumber> candidates();
  Nothing nothing() const;
  Nothing not_here(const std::string& lacking) const;
  Nothing not_wanted() const;
  Found at(VersionNumber version, Place place);
  std::optional<Place> place_of(VersionNumber version) const;
  const StoredVersion* stored_at(VersionNumber number, Place place) const;
  void give_up(Place place, const Error& why);

  JobState& state_;
  const std::size_t participants_;
  const VersionNumber wanted_;
  const VersionNumber below_;
  VersionNumber version_ = 0;  // found last
  std::uint32_t nodes_ = 1;    // of its run
  std::set<std::pair<VersionNumber, Place>> tried_;
  std::map<std::pair<VersionNumber, Place>, Code> first_trouble_;  // of what was read a second time
  std::string damage_;      // of the versions that were given up on the way
  bool elsewhere_ = false;  // of one of them other nodes have parts
};

}  // namespace backstay::agent
