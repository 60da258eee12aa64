// Where the participants of a job on several nodes get the objects of one version from: each the
// nearest place that has its own object, one place after the other until there is none left.
//
//   pool, this node's disk (what it wrote, or a copy that it keeps), other agents in the order of
//   the directory, another agent that makes it out of parity and has it then, the durable directory
//
// Before a version is given up the durable directory is listed once more: the agent that copied it
// for the run before may have written the record after this one had looked.
//
// A disk is read a second time, as the trouble may pass; another agent is not, where a third may
// have the same. No version is set aside, as copies of the damaged file may be good: who makes the
// copies is told (Around::damaged). But in the durable directory: it has all parts, and nobody
// there makes one anew.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/restart/finder.h"
#include "agent/version/job_state.h"

namespace backstay::agent {

class FinderAround final : public Finder {
 public:
  // Of `version`; its run 0: the newest known here, else the present one. `ranks`: whose objects,
  // by participant.
  FinderAround(JobState& state, std::vector<Rank> ranks, VersionOfRun version);

  void find(Done done) override;
  void failed(std::size_t participant, const Source& source, const Error& why) override;
  std::optional<Source> instead(std::size_t participant, const Source& source,
                                const Error& why) override;
  void durable_scanned() override;

 private:
  struct Search {  // for one object
    Rank rank = 0;
    std::deque<Source> left;  // the best first; front: in use
    std::map<Source, int> failures;
    std::vector<NodeId> holders;                          // that had it and could not give it
    std::vector<std::pair<NodeId, FileOf>> doubted = {};  // of those: had it damaged
    std::string why;                                      // the last trouble
    Code code = Code::io;                                 // of that, where nothing was damaged
    bool damage = false;
    bool asked = false;                  // the directory
    bool asked_parity = false;           // the directory, for parity
    std::deque<NodeId> rebuilders = {};  // that have some, and were not asked yet

    void note(const Error& trouble);
  };

  RunId known_run() const;
  void look_here(Search& search);
  void look_around(Search& search);
  void take(Search& search, const Result<std::vector<wire::peer::Holder>>& holders);
  bool has_nothing(const Search& search) const;
  bool wants_rebuilding(const Search& search) const;
  void look_for_parity(Search& search);
  void rebuild(Search& search);
  bool looks_again();
  void answer();
  Nothing nothing_of(const Search& search) const;
  const StoredVersion* durable() const;
  void drop(Search& search, const Source& source, const Error& why);
  void give_up_durable(const Error& why);
  std::string place_text(const Source& source) const;

  JobState& state_;
  VersionOfRun version_;
  std::vector<Search> searches_;  // by participant
  std::size_t lookups_ = 0;       // that are not answered
  bool looked_again_ = false;     // into the durable directory
  Done done_;
  const std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // for the directory's answers
};

}  // namespace backstay::agent
