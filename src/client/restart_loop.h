// A restart (docs/protocol/agent.md, "On several nodes"): the newest version that all ranks can
// have. Collective.
//
//   1. Every rank asks for the newest version that can be offered; the greatest of all is tried.
//   2. Every rank asks for that one, and verifies. All agree, once: the ranks keep it
//      only if every rank of every node has verified everything. If another number of ranks saved
//      it, they redistribute it, where it is made of regions.
//   3. A rank that cannot have its object says why; all skip the version and go on with the next
//      older one.
// So no rank's regions change before all have agreed. On one node the agent sees to that: it
// delivers once all of its ranks have verified everything.
//
// SavedVersions is asked: the agent (agent_versions.h), or the files (src/strategy).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "client/group.h"
#include "client/origin.h"
#include "client/restore.h"

namespace backstay::client {

// What a restart brings back.
struct RestartPlan {
  // A new target for each version that is tried; the last one has what was brought back.
  std::function<ObjectTarget&()> target;
  // Brings back a version that another number of ranks saved, where that can be.
  std::function<Status(VersionNumber version, RunId run, std::uint32_t saved_ranks, bool& touched)>
      redistribute;
  // Once all ranks have everything: what may still fail, before anything of it is used. Where it
  // fails on any rank, all skip the version. Empty: nothing may. `may_be_base`: the next version
  // may keep chunks of this one.
  std::function<Status(bool may_be_base)> make_ready;
  // Not 0: this version is wanted, or a newer one that a run of `launch` has saved since then. No
  // older one takes its place.
  VersionNumber from = 0;
  Launch launch = 0;
  // Names the version to the user also where it is the newest.
  bool names_version = false;
};

// The versions that one rank can have.
class SavedVersions {
 public:
  virtual ~SavedVersions() = default;
  struct Offer {
    VersionNumber version = 0;  // 0: there is none
    RunId run = 0;
    std::uint32_t saved_ranks = 0;
    // Not ok: why the version cannot be had; of none: Code::none, or why that is not known.
    Code code = Code::ok;
    std::string message = {};
  };
  // The newest below this one; of all where `version` is 0.
  virtual Result<Offer> newest_below(VersionNumber version, RunId run) = 0;
  // Whether the ranks of the job agree before anything is kept; else the agent of their one node
  // sees to that.
  virtual bool ranks_agree() const = 0;
  // `agree`: called exactly once, where the ranks agree. `version` 0: the newest.
  virtual RestoreOutcome restore(ObjectTarget& target, VersionNumber version, RunId run,
                                 const Restore::Agree& agree) = 0;
  // All ranks have skipped a version.
  virtual void skipped(VersionNumber /*version*/, const Error& /*why*/) {}
};

// The error of a restart as the program gets it: none for one that begins afresh and needs no
// version, else with the advice that helps.
Error as_told(const Error& why, const Origin& origin, const std::string& job, bool touched);
// Tells the user that the program begins again what an earlier run has finished.
void tell_finished(const std::string& job, VersionNumber version);
// The error where `touched` regions are neither what they were nor a version.
Error of_undefined_regions(const Error& why);

// The error of one that cannot be redistributed.
Error of_other_ranks(VersionNumber version, std::uint32_t saved_ranks, int ranks);

class RestartLoop {
 public:
  // All arguments outlive this.
  RestartLoop(const Group& group, SavedVersions& saved, const RestartPlan& plan)
      : group_(group), saved_(saved), plan_(plan) {}

  // The same outcome on all ranks. `touched`: some rank's regions may have been written to.
  // Errors: none (there is no version), corrupt, format, lost, io (of none that there is; says why
  // of each; io, else lost, where one of them is that), mismatch (also: there is no version that is
  // wanted), rank_count, agent_lost, rank_lost ...
  Result<VersionNumber> run(bool& touched);
  // The run that saved the version that run() has brought back.
  RunId saved_by() const { return saved_by_; }
  // Whether the next version may keep chunks of it; the same on all ranks.
  bool may_be_base() const { return may_be_base_; }

 private:
  struct Version {
    VersionNumber number = 0;
    RunId run = 0;
    std::uint32_t saved_ranks = 0;
    std::optional<Error> damage;  // why no rank can have it
  };

  Result<std::optional<Version>> newest_below(const Version& below);
  bool is_passed_over(const Version& version) const;
  void tell_where_it_goes_on(const Version& version) const;
  Result<VersionNumber> none_left(bool& touched);
  Error with_others(const Error& why) const;
  Status take(const Version& version, bool& touched);
  Status restore(const Version& version, bool& touched);
  Status make_ready(bool may_be_base);
  void skip(const Version& version, const Error& why);

  const Group& group_;
  SavedVersions& saved_;
  const RestartPlan& plan_;
  RunId saved_by_ = 0;
  bool may_be_base_ = false;
  bool passed_over_ = false;      // newer ones than the one that is wanted
  bool agreed_ = false;           // all ranks had verified the last one
  std::optional<Error> skipped_;  // why there is no newer version
};

}  // namespace backstay::client
