// The captured files of one job on this node come home (docs/protocol/home.md): reports to the home
// plan what happens to versions, hands its orders to the home thread, and answers who waits.
//
// Does nothing before begin_run(): a job of ranks has no captured files. Main loop's thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agent/disk/store.h"
#include "agent/home/home_plan.h"
#include "agent/version/job_state.h"
#include "wire/message.h"

namespace backstay::agent {

class HomeFiles {
 public:
  explicit HomeFiles(JobState& state) : state_(state) {}

  // A run of writers begins: what lies on the disk is looked at. Not where captured files stay in
  // the store (JobState::files_come_home).
  void begin_run();
  void local(const StoredVersion& stored);
  void gone(VersionNumber version);

  // Answered by AtHome, once.
  void settle(ConnectionId connection, const wire::BringHome& wanted);
  // Answered by MovedHome: at once, but where the file is not to be brought any more and is on its
  // way; then once it is known what became of it.
  void move(ConnectionId connection, const wire::MoveHome& wanted);
  void disconnected(ConnectionId connection);
  // A file of it was renamed and waits: copies on other hosts have its former name.
  bool is_renamed(VersionNumber version) const { return plan_.is_renamed(version); }
  // It is not on the disk, and its file is brought without it.
  bool is_called_back(VersionNumber version) const { return plan_.is_called_back(version); }

  // Since the last call: versions whose files are at their paths, so that retention may remove
  // them.
  std::vector<VersionNumber> take_at_home() { return std::exchange(at_home_, {}); }

  // Of the home thread; of the store: a version that could not be written. Others are not its.
  void on(const Event& event);
  // The thread gets its next order, and who waits an answer, where there is one.
  void pump();
  // When pump() is to be called by time alone.
  std::uint64_t wakes_at_ns() const { return began_ ? plan_.wakes_at_ns() : no_deadline; }
  // A file is on its way, or could be. What only waits for another try does not count.
  bool busy() const;

 private:
  void answered(const HomeAnswer& answer);
  bool is_of(VersionNumber version, RunId run) const;
  Status moved(const wire::MoveHome& wanted);
  void answer(ConnectionId connection, const wire::MoveHome& wanted, const Status& moved);
  void answer_movers();
  void expect_captured();
  void tell(const HomeNews& news);
  void warn(const HomeNews::Warning& warning);
  void forget_warnings();

  JobState& state_;
  std::vector<VersionNumber> at_home_;
  std::vector<VersionNumber> warned_;  // of JobState::NotHome::warnings, in their order
  HomePlan plan_;
  bool began_ = false;
  std::uint64_t ticket_ = 0;
  struct Asker {
    ConnectionId connection = 0;
    std::string path;
  };
  std::map<std::uint64_t, Asker> askers_;  // by ticket
  struct Mover {
    ConnectionId connection = 0;
    wire::MoveHome wanted;
  };
  std::vector<Mover> movers_;  // that wait for an answer
  // And their runs. The collector may ask for them when they are removed.
  std::map<VersionNumber, RunId> were_at_home_;
};

}  // namespace backstay::agent
