// Which version a restart tries next.
//
// The ranks of a run on several nodes choose it together and name it (docs/protocol/agent.md). The
// ranks of one node leave the choice to their agent: the version that they ask for, or the newest;
// where that cannot be had, the next older one. Both choose among the same candidates
// (candidate.h).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "agent/version/job_state.h"
#include "wire/message.h"

namespace backstay::agent {

class VersionChoice {
 public:
  VersionChoice(const JobState& state, const wire::Restart& wanted);

  // nullopt: none is left.
  std::optional<VersionOfRun> next();
  // This agent chooses: after a version that was given up comes the next one.
  bool goes_on() const;
  // The version that next() gave last cannot be brought back. Code io: that may pass; else corrupt.
  // `elsewhere_nodes`: on how many nodes it was saved, if other ones have what is missing; else 0.
  void given_up(const Error& why, std::uint32_t elsewhere_nodes);
  // Why there is none, once next() gave nullopt; code none: the job has no version; io: one of them
  // may be brought back another time; corrupt: all are damaged.
  Error nothing() const;

 private:
  RunId known_run(VersionNumber number) const;
  struct Trouble {
    Code code = Code::io;  // or corrupt
    std::string why = {};
  };
  using Troubles = std::map<VersionNumber, Trouble, std::greater<>>;
  static Trouble known_trouble(const StoredVersion& stored);
  static std::string text_of(const Troubles& troubles);
  Troubles damage() const;
  bool is_known() const;
  Error not_here(const std::string& lacking) const;
  Error not_wanted() const;

  const JobState& state_;
  const VersionNumber wanted_;  // 0: the newest
  std::optional<VersionOfRun> named_;
  wire::Candidates below_;
  VersionNumber chosen_ = 0;
  Troubles troubles_;  // of the versions that were given up
  bool elsewhere_ = false;
};

}  // namespace backstay::agent
