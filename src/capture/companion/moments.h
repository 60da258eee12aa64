// When the programs of all ranks are saved, and when their end has come: what companions agree on.
#pragma once

#include "capture/companion/company.h"
#include "client/session.h"

namespace backstay::image {

// What one rank knows of the cut that MPI programs need (agreed_cut.h).
struct CutWishes {
  bool uses_mpi = false;
  bool is_busy = false;     // a cut is wanted, or under way
  bool is_ready = false;    // the image is to be taken
  bool gave_up = false;     // the cut that was asked for will not be
  bool agent_lost = false;  // and has to be found again
};
// Of any rank; `is_ready` of all.
using CutOrders = CutWishes;

// What one rank knows.
struct Wishes {
  bool save = false;   // a signal has asked for it, or a cut is to be tried again
  bool stop = false;   // a signal has asked for it
  bool ended = false;  // the program has, with exit code 0 or as it was asked to
  CutWishes cut = {};
};

// The same on all ranks.
struct Orders {
  bool save = false;
  bool stop = false;
  bool all_ended = false;
  CutOrders cut = {};
};

class Moments {
 public:
  virtual ~Moments() = default;
  // Collective: all companions call it again and again.
  virtual Orders next(const Wishes& mine) = 0;
  // Whether MPI holds nothing of the programs where they are saved (docs/protocol/cut.md).
  virtual bool settles_mpi() const = 0;
  // After an order to save, before this rank's program is stopped. Errors: why it is not saved.
  virtual Status may_save() const { return {}; }
  // In that save: the image of this rank's program is fixed, and the program runs on where it may.
  virtual void fixed() {}
  // Not collective: while the version is taken.
  virtual void attend() {}
  // How that save has ended: the same on all ranks.
  virtual void saved(const Status&) {}
  // next() is to be called again at once.
  virtual bool is_hurried() const { return false; }
  // The other companions are lost, or `backstay run`: the program is let go.
  virtual void leave() {}
};

// All programs are saved as soon as all companions know that it is time, wherever they are. Good
// for programs that do not talk with each other.
class Lockstep final : public Moments {
 public:
  // Both must outlive it.
  Lockstep(const Company& company, client::Session& session)
      : group_(company.group()), session_(session) {}
  Orders next(const Wishes& mine) override;
  bool settles_mpi() const override { return false; }

  bool any(bool mine) const;

 private:
  CutOrders agree(const CutWishes& mine) const;

  const client::Group& group_;
  client::Session& session_;
};

}  // namespace backstay::image
