#include "cut/chaos.h"

#include <algorithm>

#include "base/random.h"
#include "cut/explore.h"
#include "cut/programs.h"

namespace backstay::cut {

namespace {

// Calls are dealt out in one order for all ranks, so some order of execution always exists. A
// message is sent before it is received; a collective call that was begun may be waited for later.
class Dealer {
 public:
  Dealer(SplitMix64& random, std::uint32_t ranks, bool any) : random_(random), ranks_(ranks) {
    scene_.programs.resize(ranks);
    scene_.any = any;
    std::vector<RankNumber> all(ranks);
    for (RankNumber rank = 0; rank < ranks; ++rank) all[rank] = rank;
    scene_.members.push_back(all);
    usable_.push_back(0);
    pending_.resize(ranks);
    const std::uint32_t groups = 1 + random_.below(6);
    for (std::uint32_t group = 0; group < groups; ++group) {
      scene_.members.push_back(some());
      usable_.push_back(group + 1);
    }
  }

  Scene deal(std::uint32_t calls) {
    while (calls-- > 0) one();
    for (RankNumber rank = 0; rank < ranks_; ++rank) {
      finish(rank);
      add(rank, op::linger());
    }
    return std::move(scene_);
  }

 private:
  std::vector<RankNumber> some() {
    std::vector<RankNumber> members;
    const std::uint32_t one_of = 1 + random_.below(ranks_ > 8 ? 8 : 3);
    for (RankNumber rank = 0; rank < ranks_; ++rank) {
      if (random_.below(one_of) == 0) members.push_back(rank);
    }
    if (members.empty()) members.push_back(random_.below(ranks_));
    return members;
  }
  void add(RankNumber rank, const Op& op) { scene_.programs[rank].push_back(op); }
  void finish(RankNumber rank) {
    for (; pending_[rank] > 0; --pending_[rank]) add(rank, op::wait());
  }

  void one() {
    const std::uint32_t what = random_.below(20);
    if (what < 12) return message(what);
    if (what < 19) return collective(what);
    make();
  }

  void message(std::uint32_t what) {
    const RankNumber from = random_.below(ranks_), to = random_.below(ranks_);
    if (from == to) return;
    const std::uint32_t tag = random_.below(2);
    add(from, what < 3 ? op::ssend(to, tag) : op::send(to, tag));
    Op receive = op::recv(from, tag);
    // A receive from any rank must not take what another receive waits for: a tag of its own.
    if (scene_.any && what > 9) {
      receive = op::recv(any_rank, 100 + to);
      scene_.programs[from].back().tag = receive.tag;
    }
    add(to, receive);
  }

  void collective(std::uint32_t what) {
    const std::uint32_t comm = usable_[random_.below(static_cast<std::uint32_t>(usable_.size()))];
    const auto& members = scene_.members[comm];
    const RankNumber root = members[random_.below(static_cast<std::uint32_t>(members.size()))];
    for (const RankNumber rank : members) {
      if (what < 14) add(rank, op::barrier(comm));
      if (what == 14) add(rank, op::bcast(root, comm));
      if (what == 15) add(rank, op::reduce(root, comm));
      if (what < 16) continue;
      add(rank, what == 16 ? op::ibarrier(comm) : op::ibcast(root, comm));
      ++pending_[rank];
      if (random_.below(3) == 0) continue;  // waits for it much later
      finish(rank);
    }
  }

  void make() {
    if (scene_.members.size() < 12) {
      const auto child = static_cast<std::uint32_t>(scene_.members.size());
      const std::uint32_t parent =
          usable_[random_.below(static_cast<std::uint32_t>(usable_.size()))];
      const std::vector<RankNumber> all = scene_.members[parent];
      std::vector<RankNumber> members;
      for (const RankNumber rank : all) {
        if (random_.below(2) == 0) members.push_back(rank);
      }
      if (members.empty()) members.push_back(all.front());
      scene_.members.push_back(members);
      for (const RankNumber rank : all) add(rank, op::create(child, parent));
      usable_.push_back(child);
    } else if (usable_.size() > 2) {
      const std::size_t at = 1 + random_.below(static_cast<std::uint32_t>(usable_.size()) - 1);
      for (const RankNumber rank : scene_.members[usable_[at]]) {
        finish(rank);
        add(rank, op::free(usable_[at]));
      }
      usable_.erase(usable_.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }

  SplitMix64& random_;
  std::uint32_t ranks_;
  Scene scene_;
  std::vector<std::uint32_t> usable_;
  std::vector<std::uint32_t> pending_;
};

// What happens next: programs, network and control plane each have their own speed, and some ranks
// are slow.
class Pace {
 public:
  Pace(SplitMix64& random, std::uint32_t ranks) : random_(random), slow_(ranks) {
    for (std::uint32_t& one : speed_) one = 1 + random_.below(16);
    for (auto&& slow : slow_) slow = random_.below(8) == 0;
  }
  const Action& choose(const std::vector<Action>& actions) {
    for (int tries = 0; tries < 64; ++tries) {
      const Action& action = actions[random_.below(static_cast<std::uint32_t>(actions.size()))];
      const bool rare = action.what == Action::What::kill || action.what == Action::What::cut_off ||
                        action.what == Action::What::deadline ||
                        action.what == Action::What::request;
      if (rare && random_.below(200) != 0) continue;
      const bool of_rank = action.what != Action::What::pass_on && !rare;
      if (of_rank && slow_[action.rank] && random_.below(16) != 0) continue;
      if (random_.below(16) < speed_[static_cast<std::size_t>(action.what)]) return action;
    }
    return actions[random_.below(static_cast<std::uint32_t>(actions.size()))];
  }

 private:
  SplitMix64& random_;
  std::uint32_t speed_[13] = {};
  std::vector<bool> slow_;
};

}  // namespace

Scene random_scene(SplitMix64& random, std::uint32_t ranks, std::uint32_t calls) {
  return with_expected(Dealer(random, ranks, /*any=*/false).deal(calls));
}

Outcome play(std::uint64_t seed, const Limits& limits) {
  SplitMix64 random(seed);
  Outcome outcome;
  outcome.ranks = 2 + random.below(limits.ranks - 1);
  const bool any = random.below(4) == 0;
  Scene scene = Dealer(random, outcome.ranks, any).deal(limits.calls);
  scene.arity = random.below(2) == 0 ? 0 : 2 + random.below(7);
  scene = with_expected(scene);
  if (scene.expected.empty()) {
    outcome.broken = "the program does not come to its end without a cut";
    return outcome;
  }
  scene.requests = 1 + random.below(4);
  outcome.faulty = limits.faults && random.below(4) == 0;
  if (outcome.faulty) {
    (random.below(2) == 0   ? scene.deadlines
     : random.below(2) == 0 ? scene.kills
                            : scene.breaks) = 1;
  }
  World world(scene);
  Pace pace(random, outcome.ranks);
  for (;;) {
    const auto actions = world.enabled();
    if (world.is_at_rest()) break;
    world.apply(pace.choose(actions));
    outcome.rounds = std::max(outcome.rounds, world.rounds);
    outcome.collectives = std::max(outcome.collectives, world.collectives);
    if (!world.broken.empty()) break;
  }
  outcome.broken = world.wrong_at_rest();
  outcome.saved = world.saved;
  outcome.given_up = world.given_up;
  if (outcome.broken.empty() && !outcome.faulty && outcome.given_up > 0)
    outcome.broken = "a cut was given up for no reason";
  return outcome;
}

}  // namespace backstay::cut
