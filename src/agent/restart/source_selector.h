// What a restore brings back, and where each participant gets its object from: the nearest place
// that has its own object, one place after the other until there is none left. Then the version is
// given up, and the next one is tried, if this agent chooses it (version_choice.h).
//
//   pool, this node's disk (what it wrote, or a copy that it keeps), other agents in the order of
//   the directory, another agent that makes it out of parity and has it then, the durable directory
//
// In a run of one node there are no other agents; the rest is the same.
//
// Before a version is given up the durable directory is listed once more: the agent that copied it
// for the run before may have written the record after this one had looked.
//
// A disk is read a second time, as the trouble may pass; another agent is not, where a third may
// have the same. What is damaged on a node's disk is reported to those who make the copies
// (RemoteFiles::damaged). Where nobody makes copies, which is on the disk of a run of one node and
// in the durable directory, the version is quarantined in that place once it was damaged twice; a
// read error skips that place for this restore only.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "agent/restart/source.h"
#include "agent/restart/version_choice.h"
#include "agent/version/held_files.h"
#include "agent/version/job_state.h"
#include "wire/peer_message.h"

namespace backstay::agent {

class SourceSelector {
 public:
  using Found = FoundVersion;
  using Nothing = Error;  // that is left to try; code none: the job has no version
  using Done = std::function<void(const std::variant<Found, Nothing>&)>;

  // `ranks`: whose objects, by participant. `wanted`: the version; in a run of one node 0 is the
  // newest.
  SourceSelector(JobState& state, const std::vector<Rank>& ranks, const wire::Restart& wanted);

  // `done` is called once, at once or later, and never after the selector's end.
  void find(Done done);
  // What was read from there for this participant cannot be used; find() takes it into account.
  void failed(std::size_t participant, const Source& source, const Error& why);
  // Could not be read any more: another holder of the same bytes, so that the restart need not
  // begin again.
  std::optional<Source> instead(std::size_t participant, const Source& source, const Error& why);
  // The durable directory was listed once more, as find() may have ordered
  // (JobState::durable_looks).
  void durable_scanned();

 private:
  struct Search {  // for one object
    Rank rank = 0;
    std::deque<Source> left = {};                         // the best first; front: in use
    std::vector<NodeId> holders = {};                     // that had it and could not give it
    std::vector<std::pair<NodeId, FileOf>> doubted = {};  // of those: had it damaged
    std::string why = {};                                 // the last trouble
    Code code = Code::io;                                 // of that, where nothing was damaged
    bool damage = false;                                  // or gone; reading again gives the same
    bool passes = false;                                  // a place could not be read just now
    bool asked = false;                                   // the directory
    bool asked_parity = false;                            // the directory, for parity
    std::deque<NodeId> rebuilders = {};                   // that have some, and were not asked yet

    void note(const Error& trouble);
  };
  struct Trouble {
    int times = 0;
    Code first = Code::ok;
  };

  bool alone() const { return state_.nodes == 1; }
  bool is_whole(Place place) const;
  bool begin_version();
  void search();
  void look_here(Search& search);
  void look_around(Search& search);
  void take(Search& search, const Result<std::vector<wire::peer::Holder>>& holders);
  bool has_nothing(const Search& search) const;
  bool wants_rebuilding(const Search& search) const;
  void look_for_parity(Search& search);
  void rebuild(Search& search);
  bool looks_again();
  void answer();
  void give_up_version(const Search& search);
  Error nothing_of(const Search& search) const;
  const StoredVersion* local() const;
  const StoredVersion* durable() const;
  std::uint32_t nodes_of_version() const;
  int tries_at(Place place, Code code) const;
  void drop(Search& search, const Source& source, const Error& why);
  void drop_one(Search& search, const Source& source, const Error& why);
  void drop_place(Place place, Code first, const Error& why);
  void quarantine(Place place, const Error& why);
  std::string place_text(const Source& source) const;

  JobState& state_;
  VersionChoice choice_;
  VersionOfRun version_ = {};
  std::vector<Search> searches_;  // by participant
  // Of the present version, by participant; of a place that has it as a whole by `all`.
  static constexpr Rank all = UINT32_MAX;
  std::map<std::pair<Rank, Source>, Trouble> troubles_;
  std::uint32_t elsewhere_nodes_ = 0;  // that saved it, where not all of it is here
  std::size_t lookups_ = 0;            // that are not answered
  bool looked_again_ = false;          // into the durable directory
  bool listing_ = false;               // it is being listed for that
  Done done_;
  const std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // for the directory's answers
};

}  // namespace backstay::agent
