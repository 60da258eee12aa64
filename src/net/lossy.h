// A wrapper that plays what a network does wrong, chosen by a seed.
//
// Fault model. A transport promises order and at-most-once (transport.h), so a message never vanishes, doubles
// or overtakes between two that arrive; what a real one may do, this one does often:
//  - delay: each event comes up to delay_s_max late, in the order of its peer;
//  - cut: instead of an event the connection ends, for both sides. What was under way or held back is
//    lost: the end of what the peer sent;
//  - unreachable: a connect() fails;
//  - busy: send() and offer() answer again although there is room; Ready follows;
//  - refused: an offer to us is turned down as if we had;
//  - kill(): the power goes off. Nothing moves any more and nobody is told.
// Loss, doubling and reordering of single messages, which the tree must survive too, are played by the
// tree's own simulation: there no transport lies below.
//
// The same seed and the same history give the same faults. While an event is held back the descriptor is
// readable: a wrapper for tests, which may spin.
#pragma once

#include <memory>

#include "base/clock.h"
#include "net/transport.h"

namespace backstay::net {

struct LossyPlan {
  std::uint64_t seed = 0;
  double delay_s_max = 0;
  // About each so manyeth one; 0: none.
  unsigned cut_one_in = 0;          // of the events
  unsigned unreachable_one_in = 0;  // of the calls of connect()
  unsigned busy_one_in = 0;         // of the calls of send() and offer()
  unsigned refused_one_in = 0;      // of the offers to us
};

class LossyTransport : public Transport {
 public:
  virtual void kill() = 0;
};

// `clock` must outlive it.
std::unique_ptr<LossyTransport> make_lossy(std::unique_ptr<Transport> inner, const Clock& clock,
                                           LossyPlan plan);

}  // namespace backstay::net
