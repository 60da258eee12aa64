// When the programs of all ranks are saved, and when their end has come: what companions agree on.
#pragma once

#include "capture/companion/company.h"
#include "client/session.h"

namespace backstay::image {

// What one rank knows.
struct Wishes {
  bool save = false;   // a signal has asked for it, or a cut is to be tried again
  bool stop = false;   // a signal has asked for it
  bool ended = false;  // the program has, with exit code 0 or as it was asked to
};

// The same on all ranks.
struct Orders {
  bool save = false;
  bool stop = false;
  bool all_ended = false;
};

class Moments {
 public:
  virtual ~Moments() = default;
  // Collective: all companions call it again and again.
  virtual Orders next(const Wishes& mine) = 0;
  // Whether MPI holds nothing of the programs where they are saved (docs/protocol/cut.md).
  virtual bool settles_mpi() const = 0;
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

 private:
  bool any(bool mine) const;

  const client::Group& group_;
  client::Session& session_;
};

}  // namespace backstay::image
