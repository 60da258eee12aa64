// The commit of each level of a version, over floors (floors.h).
//
//  held      a member reports level L of a version once that level is durable on its side.
//  decided   floor(held) >= L: every member of the version's run has reported L. Each agent that
//            learns this is asked to put the commit record of L on its disk (Record), and reports
//            when it is there (recorded()).
//  announced floor(recorded) >= L: every member of this run has the record on its disk. Only now
//  the level becomes visible (Announce).
//
// Never early: floor(held) is a report of every member. Never lost: after an announcement every
// disk has the record, so each disk that is left has it, whatever happens. An agent that starts
// passes its records on (remember()), which makes the level decided again for all.
//
// `held` counts in the version's own run only: the members of another run are other nodes, and what
// *they* hold says nothing about the version. Records of earlier runs count in every run: a record
// says that the level was decided.
#pragma once

#include <map>
#include <vector>

#include "tree/floors.h"

namespace backstay::tree {

// Versions of several runs of a job may have the same number.
struct RunVersion {
  RunId run = 0;
  VersionNumber version = 0;
  auto operator<=>(const RunVersion&) const = default;  // NOLINT: <=> is no 0
};

// The levels of a version that are on the disk of a node that starts; Level::none: not on the disk.
struct Remembered {
  RunVersion version;
  Level held = Level::none;
  Level recorded = Level::none;
};

// "Put the commit record of this level on the disk, then call recorded()."
struct Record {
  RunVersion version;
  Level level = Level::none;
};
// "The version has this level."
struct Announce {
  RunVersion version;
  Level level = Level::none;
};

class Commit {
 public:
  Commit(RunId run, Floors& floors) : run_(run), floors_(floors) {}

  void remember(const Remembered& remembered);
  // Precondition: level >= local; a captured version does not outlive its agent.
  void held(VersionNumber version, Level level);
  void recorded(RunVersion version, Level level);
  Level announced(RunVersion version) const;
  // The level that held() was called with; and the one that a parent has heard of (Floors::told()).
  Level held(VersionNumber version) const;
  Level told(VersionNumber version) const;

  // A floor rose; appends the order that follows to one of the lists.
  void risen(const wire::tree::Floor& floor, std::vector<Record>& record,
             std::vector<Announce>& announce);

 private:
  RunId run_;
  Floors& floors_;
  std::map<RunVersion, Level> asked_;  // records that were asked for or are there
};

}  // namespace backstay::tree
