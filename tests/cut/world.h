// A program of a few ranks over a network, with the control plane of a cut, as one value: every
// interleaving of it can be played by copying it and applying an action (explore.h), or one at
// random (chaos.h). docs/protocol/cut.md says what must hold; a broken promise is in `broken`.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cut/coordinator.h"
#include "cut/rank.h"

namespace backstay::cut {

// One call of a program.
struct Op {
  enum class What : std::uint8_t {
    send,     // to peer, with a tag; does not wait
    ssend,    // waits until the peer's program takes it
    recv,     // from peer, with a tag; peer any_rank: from whichever comes first
    barrier,  // leaves when all members have entered
    bcast,    // the root leaves at once, the others when the root has entered
    reduce,   // all but the root leave at once, the root when all have entered
    ibarrier,
    ibcast,  // the same, begun only
    wait,    // for the oldest of these that is not complete
    create,  // of communicator `child`, on comm
    free,    // of comm
    linger   // the process stays until the history ends
  };
  What what = What::send;
  RankNumber peer = 0;  // or root
  std::uint32_t tag = 0;
  std::uint32_t comm = 0;
  std::uint32_t child = 0;
};
using Programs = std::vector<std::vector<Op>>;

struct Scene {
  Programs programs;
  std::vector<std::vector<RankNumber>> members;  // of each communicator; 0 is that of all ranks
  std::uint32_t requests = 1;
  std::uint32_t deadlines = 0;  // how often the coordinator's owner may give up
  std::uint32_t kills = 0;      // of ranks
  std::uint32_t breaks = 0;     // of links between a rank and the coordinator
  std::uint32_t arity = 0;      // ranks below one agent; 0: all report to the coordinator
  bool any = false;             // receives from any rank: what is received may differ
  // Others carry reports and orders, and own the coordinator: they get what ranks report, and hear
  // which rank has its image. Then give(), lose_agent() and find_agent() are theirs to call.
  std::function<void(RankNumber, const Report&)> reported;
  std::function<void(RankNumber)> imaged;
  std::vector<std::vector<std::uint64_t>> expected;  // what each rank receives, undisturbed
};

struct Letter {
  RankNumber from = 0;
  std::uint32_t tag = 0;
  std::uint64_t number = 0;  // of its sender's letters to this receiver
  auto fields() const { return std::tie(from, tag, number); }
};

struct Pending {  // a collective call that was begun and is not waited for yet
  std::uint32_t comm = 0;
  std::uint64_t index = 0;
  Op::What what = Op::What::ibarrier;
  RankNumber root = 0;
  auto fields() const { return std::tie(comm, index, what, root); }
};

// What is in a process's memory: all that an image holds.
struct Memory {
  std::uint32_t at = 0;  // the next call
  enum class In : std::uint8_t { program, door, collective, waiting, ended } in = In::program;
  std::vector<Letter> drained;
  std::vector<Pending> pending;
  std::vector<std::uint64_t> received;            // what the program got
  std::vector<std::vector<std::uint64_t>> taken;  // numbers, by sender
  std::vector<std::uint64_t> letters;             // sent, by receiver
  std::vector<std::uint64_t> entered;             // collective calls begun, by communicator
  auto fields() const {
    return std::tie(at, in, drained, pending, received, taken, letters, entered);
  }
};

struct Process {
  explicit Process(RankNumber self, std::uint32_t ranks) : machine(self, ranks) {}
  Memory memory;
  Rank machine;
  bool awake = false;  // may try the door again
  // A program that was asked to stop goes on until it stands.
  bool in_cut = false, stop = false, stood = false, saving = false, imaged = false;
  bool dead = false, cut_off = false;
  std::vector<Letter> arrived;
  std::deque<Report> up;
  std::deque<Order> down;
  std::optional<Memory> image;
  std::optional<Rank> image_machine;
  VersionNumber version = 0;  // that was ordered last
  auto fields() const {
    return std::tie(memory, machine, awake, stop, stood, saving, imaged, dead, cut_off, arrived, up,
                    down, image);
  }
};

struct Agent {  // of several ranks, where Scene::arity says so
  Reports reports;
  std::deque<Report> up;
  auto fields() const { return std::tie(reports, up); }
};

struct Action {
  enum class What : std::uint8_t {
    request,
    step,
    deliver,
    drain,
    stand,
    save,
    up,
    pass_on,
    down,
    deadline,
    kill,
    cut_off,
    told
  };
  What what = What::step;
  RankNumber rank = 0;
  RankNumber peer = 0;
};
std::string name_of(const Action& action);

class World {
 public:
  explicit World(const Scene& scene);
  std::vector<Action> enabled() const;
  // Those that are no faults.
  bool is_at_rest() const;
  void apply(const Action& action);
  // A history has come to its end: what is wrong with that.
  std::string wrong_at_rest() const;
  // For those who carry.
  struct Image {
    Memory memory;
    Rank machine;
  };
  void give(RankNumber rank, const Order& order) { ranks_[rank].down.push_back(order); }
  void lose_agent(RankNumber rank);
  void find_agent(RankNumber rank);
  const Process& process(RankNumber rank) const { return ranks_[rank]; }
  std::optional<Image> take_image(RankNumber rank);
  // The images of all ranks are started, with an empty network. "": they come to the same end.
  std::string start_from(const std::vector<Image>& images) const;
  // When the coordinator orders to save; sets `broken`.
  void check_cut();

  // What each rank received.
  std::vector<std::vector<std::uint64_t>> received() const;

  std::string broken;
  std::uint32_t saved = 0, given_up = 0;
  std::uint32_t rounds = 0;       // of the last cut
  std::uint64_t collectives = 0;  // begun between the last request and its stop

  auto fields() const {
    return std::tie(ranks_, agents_, net_, coordinator_, reports_, requests_, deadlines_, kills_,
                    breaks_, untold_, is_whole_, saved, given_up);
  }

 private:
  void apply_to_rank(const Action& action);
  void apply_to_coordinator(const Action& action);
  void break_part(const Action& action);
  void open_communicators();
  const Op* next(const Process& process) const;
  bool may_step(RankNumber rank) const;
  void step(RankNumber rank);
  void enter(Process& process, const Op& op);
  void leave(Process& process, const Op& op);
  bool may_leave(const Process& process, const Pending& call) const;
  std::optional<std::size_t> match(const std::vector<Letter>& letters, const Op& op) const;
  bool take(RankNumber rank, const Op& op);
  void post(RankNumber rank, const Op& op);
  bool is_taken(RankNumber rank, RankNumber by) const;
  bool may_stand(const Process& process) const;
  bool may_drain(const Process& process) const;
  void collect(RankNumber rank);
  void collect_coordinator();
  void hear(const Report& report, std::uint32_t child);
  void check_images();

  const Scene* scene_;
  std::vector<Process> ranks_;
  std::vector<Agent> agents_;
  std::vector<std::vector<std::deque<Letter>>> net_;  // [from][to]
  Coordinator coordinator_;
  Reports reports_;
  std::uint32_t requests_, deadlines_, kills_, breaks_;
  std::uint32_t untold_ = 0;  // losses that the coordinator has not heard of
  bool is_whole_ = true;      // as far as it knows
};

// Plays one history without a cut; the same one each time. True where all programs came to their
// ends.
bool run_undisturbed(World& world);

}  // namespace backstay::cut
