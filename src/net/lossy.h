// A wrapper that simulates the faults of a network, chosen by a seed.
//
// Fault model. A transport promises order and at-most-once (transport.h), so a message is never
// lost, doubled or overtaken between two that arrive. The faults that a real network has seldom,
// this one has often:
//  - delay: each event comes up to delay_s_max late, in the order of its peer;
//  - cut: instead of an event the connection ends, for both sides. The last events of the peer,
//    those under way or held back, are lost;
//  - unreachable: a connect() fails;
//  - busy: send() and offer() answer again although there is room; Ready follows;
//  - refused: an offer to us is refused as if we had refused it;
//  - kill(): the power goes off. Nothing moves any more, and no side is notified.
// The tree must also survive loss, doubling and reordering of single messages; its own simulation,
// which has no transport below, produces these.
//
// The same seed and the same history give the same faults. While an event is held back the
// descriptor is readable: a wrapper for tests, which may spin.
#pragma once

#include <memory>

#include "base/clock.h"
#include "net/transport.h"

namespace backstay::net {

struct LossyPlan {
  std::uint64_t seed = 0;
  double delay_s_max = 0;
  // One in about this many; 0: none.
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
