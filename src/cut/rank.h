// One rank's part in a cut (docs/protocol/cut.md): it counts collective calls and messages, and
// during a cut it says which collective calls may begin.
//
// A pure state machine: the owner tells it what the program does and what the coordinator orders,
// and then takes what is to be done. No I/O, no clock. One caller at a time. It lives in the
// program's process, so no order, however wrong, ends the program: what does not fit is ignored.
//
// Counting costs two additions a message and one a collective call; all else happens in a cut only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "cut/report.h"

namespace backstay::cut {

struct Wake {};  // a collective call that was refused may be tried again
struct Stop {};  // the program shall stand still; then stands()
// The program as it stands is the cut, and takes in no more messages; when its image is complete,
// saved().
struct Save {};
struct GoOn {};  // the cut has ended for this rank: the program goes on, and tries again
using RankOutput = std::variant<Report, Wake, Stop, Save, GoOn>;

class Rank {
 public:
  Rank(RankNumber self, std::uint32_t ranks) : self_(self), peers_(ranks) {}

  // The program is a member of a communicator that is there from the start.
  void open(CommunicatorNumber communicator);
  // The program is about to begin a collective call, blocking or not. False: it waits for Wake or
  // GoOn and asks again. `makes`: the communicator that the call makes, of which the program is a
  // member from now on, not from the call's return.
  bool may_begin(CommunicatorNumber communicator, std::optional<CommunicatorNumber> makes = {});
  // The call that frees it has returned; it returns only when every member has begun it.
  void closed(CommunicatorNumber communicator);

  void sent(RankNumber to);
  // A message has left MPI, for the program or for the store of messages that were drained.
  void took_in(RankNumber from);
  // The program itself has received one, from MPI or from that store.
  void took(RankNumber from);

  // The program sleeps until one of these happens. While it waits, or is refused a collective call,
  // the owner takes in every message that arrives.
  struct Awaited {
    RankNumber peer = 0;  // any_rank
    Need::What what = Need::What::message;
  };
  void waits(std::vector<Awaited> awaited);
  void woke();

  // The same counters as a whole, for an owner who reads them where another process counts; the
  // calls above that count are then not used. In a cut a clock is what it was
  // when the cut came, and what permit() has allowed since: a reader may still see an older one,
  // or a newer one of a call that will be taken back and ask.
  struct Observed {
    std::map<CommunicatorNumber, std::uint64_t> begun;
    struct Messages {
      std::uint64_t sent = 0, taken_in = 0, taken = 0;
      bool operator==(const Messages&) const = default;
    };
    std::vector<Messages> peers;  // as many as there are ranks
    std::vector<Awaited> awaited;
    // In a collective call that blocks: the program may be a member of a new communicator when it
    // comes out, so it cannot have reached a round.
    bool in_collective = false;
  };
  void observe(Observed now);
  enum class Permit { any, behind };  // behind: only where this clock is below its target
  // may_begin() of such a program, which comes to the call later: until it is seen there or behind
  // it, it has not reached the round.
  bool permit(CommunicatorNumber communicator, Permit which = Permit::any);

  // The answer to Stop: outside of every call into MPI that blocks, with all collective calls that
  // were begun complete.
  void stands();
  void saved();  // the answer to Save
  void ends();   // the process ends
  // The way to the coordinator is lost: the program goes on, and what still comes is ignored.
  void lose_coordinator();
  void find_coordinator();

  void receive(const Order& order);
  std::vector<RankOutput> take();

  std::uint64_t begun(CommunicatorNumber communicator) const;

  auto fields() const {
    return std::tie(self_, peers_, clocks_, awaited_, phase_, cut_, round_, targets_, needs_,
                    has_image_, all_closed_, alone_, ended_, in_collective_, told_);
  }

 private:
  enum class Phase : std::uint8_t { none, run_on, stopping, standing, saving };
  using Peer = Observed::Messages;

  bool is_behind() const;
  bool is_behind(CommunicatorNumber communicator) const;
  bool is_needed() const;
  bool is_needed_by(const Need& need) const;
  bool may_run_on() const { return is_behind() || is_needed(); }
  void run_on(const Order& order);
  void leave_cut();
  void leave_if_saved();
  Report report() const;
  void tell();

  RankNumber self_;
  std::vector<Peer> peers_;
  std::map<CommunicatorNumber, std::uint64_t> clocks_;  // collective calls begun
  std::vector<Awaited> awaited_;
  Phase phase_ = Phase::none;
  CutNumber cut_ = 0;  // the present one, or the last
  std::uint32_t round_ = 0;
  std::map<CommunicatorNumber, std::uint64_t> targets_;  // also of communicators to come
  std::vector<Need> needs_;
  bool has_image_ = false;   // of this cut
  bool all_closed_ = false;  // no message that is sent from now on can come into an image
  bool alone_ = false;       // without a coordinator
  bool ended_ = false;
  bool in_collective_ = false;
  std::optional<Report> told_;
  std::vector<RankOutput> out_;
};

}  // namespace backstay::cut
