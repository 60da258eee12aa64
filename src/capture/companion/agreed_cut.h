// Programs that talk with each other by MPI are saved in a cut on which all ranks agree
// (docs/protocol/cut.md). Where no rank is between MPI_Init and MPI_Finalize they are saved in
// lockstep, as programs without MPI.
//
// Reports and orders go over the session's connection as they come. What follows from them for the
// companions as a group (to save now, to give a save up) is agreed on in lockstep, so that no rank
// comes to a collective call alone.
#pragma once

#include <optional>

#include "capture/companion/cut_member.h"
#include "capture/companion/moments.h"
#include "capture/companion/told_reason.h"
#include "client/cut_link.h"

namespace backstay::image {

class AgreedCut final : public Moments {
 public:
  // All must outlive it. `channel`: of the program's present life.
  AgreedCut(const Company& company, client::Session& session, lower::Channel& channel)
      : company_(company),
        channel_(channel),
        link_(session),
        member_(channel),
        lockstep_(company, session) {}

  Orders next(const Wishes& mine) override;
  bool settles_mpi() const override { return !why_not_; }
  Status may_save() const override { return why_not_ ? Status(*why_not_) : Status(); }
  void fixed() override;
  void attend() override { pump(); }
  void saved(const Status& status) override;
  bool is_hurried() const override { return member_.is_busy(); }
  void leave() override;

 private:
  Orders order_cut(Orders orders);
  bool uses_mpi() const;
  void pump();
  void hear(const client::CutLink::News& news);
  void hear_why(const Error& why);
  void hand_on();

  const Company& company_;
  lower::Channel& channel_;
  client::CutLink link_;
  CutMember member_;
  Lockstep lockstep_;
  bool wanted_ = false;       // a cut is asked for, and no save has followed; the same on all ranks
  bool stop_wanted_ = false;  // and then the end; likewise
  bool ready_ = false;        // the image of the present cut is to be taken
  bool lost_ = false;         // the agent
  cut::CutNumber cut_ = 0;    // the newest that an order has named
  ToldReason told_{CutMember::has_not_begun};
  std::optional<Error> over_;     // how the cut that this rank has asked for was given up
  std::optional<Error> why_not_;  // the save that was ordered last is none: why
};

}  // namespace backstay::image
