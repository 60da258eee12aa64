#include "cut/world.h"

#include <algorithm>

namespace backstay::cut {

World::World(const Scene& scene)
    : scene_(&scene),
      net_(scene.programs.size(), std::vector<std::deque<Letter>>(scene.programs.size())),
      coordinator_(static_cast<std::uint32_t>(scene.programs.size())),
      requests_(scene.requests),
      deadlines_(scene.deadlines),
      kills_(scene.kills),
      breaks_(scene.breaks) {
  const auto count = static_cast<std::uint32_t>(scene.programs.size());
  for (RankNumber rank = 0; rank < count; ++rank) {
    Process& process = ranks_.emplace_back(rank, count);
    process.memory.taken.resize(count);
    process.memory.letters.resize(count);
    process.memory.entered.resize(scene.members.size());
  }
  open_communicators();
  if (scene.arity > 0) agents_.resize((count + scene.arity - 1) / scene.arity);
}

// Those that no call makes are there from the start.
void World::open_communicators() {
  for (std::uint32_t comm = 0; comm < scene_->members.size(); ++comm) {
    bool made = false;
    for (const auto& program : scene_->programs) {
      made = made || std::any_of(program.begin(), program.end(), [comm](const Op& op) {
               return op.what == Op::What::create && op.child == comm;
             });
    }
    if (made) continue;
    for (const RankNumber member : scene_->members[comm]) ranks_[member].machine.open(comm);
  }
}

const Op* World::next(const Process& process) const {
  const auto& program = scene_->programs[static_cast<std::size_t>(&process - ranks_.data())];
  return process.memory.at < program.size() ? &program[process.memory.at] : nullptr;
}

std::optional<std::size_t> World::match(const std::vector<Letter>& letters, const Op& op) const {
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if ((op.peer == any_rank || letters[i].from == op.peer) && letters[i].tag == op.tag) return i;
  }
  return std::nullopt;
}

bool World::is_taken(RankNumber rank, RankNumber by) const {
  const auto& taken = ranks_[by].memory.taken[rank];
  const std::uint64_t last = ranks_[rank].memory.letters[by];
  return std::find(taken.begin(), taken.end(), last) != taken.end();
}

bool World::may_leave(const Process& process, const Pending& call) const {
  const auto rank = static_cast<RankNumber>(&process - ranks_.data());
  const auto entered = [&](RankNumber member) {
    return ranks_[member].memory.entered[call.comm] >= call.index;
  };
  const bool is_bcast = call.what == Op::What::bcast || call.what == Op::What::ibcast;
  if (is_bcast) return rank == call.root || entered(call.root);
  if (call.what == Op::What::reduce && rank != call.root) return true;
  const auto& members = scene_->members[call.comm];
  return std::all_of(members.begin(), members.end(), entered);
}

bool World::may_step(RankNumber rank) const {
  const Process& process = ranks_[rank];
  const Memory& memory = process.memory;
  if (process.dead || process.stood || process.saving || memory.in == Memory::In::ended)
    return false;
  const Op* op = next(process);
  if (memory.in == Memory::In::collective) {
    return may_leave(process, {op->comm, memory.entered[op->comm], op->what, op->peer});
  }
  if (op == nullptr) return true;  // it ends
  if (op->what == Op::What::linger) return false;
  if (memory.in == Memory::In::door) return process.awake;
  if (memory.in == Memory::In::program) return true;
  if (op->what == Op::What::ssend) return is_taken(rank, op->peer);
  if (op->what == Op::What::wait) return may_leave(process, memory.pending.front());
  return match(memory.drained, *op) || match(process.arrived, *op);
}

// The program goes one step on: it begins a call, or a call that it is in returns.
void World::step(RankNumber rank) {
  Process& process = ranks_[rank];
  Memory& memory = process.memory;
  const Op* op = next(process);
  if (op == nullptr) {
    memory.in = Memory::In::ended;
    process.machine.ends();
    return;
  }
  switch (op->what) {
    case Op::What::send:
      post(rank, *op);
      ++memory.at;
      return;
    case Op::What::ssend:
      if (memory.in == Memory::In::program) {
        post(rank, *op);
        memory.in = Memory::In::waiting;
        process.machine.waits({{op->peer, Need::What::taken}});
        return;
      }
      break;
    case Op::What::recv:
      if (!take(rank, *op)) return;
      break;
    case Op::What::wait:
      if (!may_leave(process, memory.pending.front())) {
        memory.in = Memory::In::waiting;
        return;
      }
      memory.pending.erase(memory.pending.begin());
      break;
    default:
      if (memory.in == Memory::In::collective) {
        leave(process, *op);
      } else {
        enter(process, *op);
      }
      return;
  }
  if (memory.in == Memory::In::waiting) process.machine.woke();
  memory.in = Memory::In::program;
  ++memory.at;
}

void World::post(RankNumber rank, const Op& op) {
  Process& process = ranks_[rank];
  net_[rank][op.peer].push_back({rank, op.tag, ++process.memory.letters[op.peer]});
  process.machine.sent(op.peer);
}

bool World::take(RankNumber rank, const Op& op) {
  Process& process = ranks_[rank];
  Memory& memory = process.memory;
  Letter letter;
  if (const auto stored = match(memory.drained, op)) {
    letter = memory.drained[*stored];
    memory.drained.erase(memory.drained.begin() + static_cast<std::ptrdiff_t>(*stored));
  } else if (const auto here = match(process.arrived, op)) {
    letter = process.arrived[*here];
    process.arrived.erase(process.arrived.begin() + static_cast<std::ptrdiff_t>(*here));
    process.machine.took_in(letter.from);
  } else {
    memory.in = Memory::In::waiting;
    process.machine.waits({{op.peer, Need::What::message}});
    return false;
  }
  process.machine.took(letter.from);
  memory.taken[letter.from].push_back(letter.number);
  memory.received.push_back(letter.from * 1000 + letter.number);
  return true;
}

void World::enter(Process& process, const Op& op) {
  Memory& memory = process.memory;
  std::optional<CommunicatorNumber> makes;
  if (op.what == Op::What::create) {
    const auto& members = scene_->members[op.child];
    const auto rank = static_cast<RankNumber>(&process - ranks_.data());
    if (std::find(members.begin(), members.end(), rank) != members.end()) makes = op.child;
  }
  process.awake = false;
  if (!process.machine.may_begin(op.comm, makes)) {
    memory.in = Memory::In::door;
    return;
  }
  if (process.in_cut) ++collectives;
  ++memory.entered[op.comm];
  if (op.what == Op::What::ibarrier || op.what == Op::What::ibcast) {
    memory.pending.push_back({op.comm, memory.entered[op.comm], op.what, op.peer});
    memory.in = Memory::In::program;
    ++memory.at;
  } else {
    memory.in = Memory::In::collective;
  }
}

void World::leave(Process& process, const Op& op) {
  if (op.what == Op::What::free) process.machine.closed(op.comm);
  process.memory.in = Memory::In::program;
  ++process.memory.at;
}

// Outside of every call that blocks, and what was begun is complete.
bool World::may_stand(const Process& process) const {
  const Memory& memory = process.memory;
  if (!process.stop || process.stood || process.dead) return false;
  if (memory.in == Memory::In::collective || memory.in == Memory::In::ended) return false;
  return std::all_of(memory.pending.begin(), memory.pending.end(),
                     [&](const Pending& call) { return may_leave(process, call); });
}

bool World::may_drain(const Process& process) const {
  if (process.dead || process.arrived.empty() || process.saving) return false;
  if (process.stood) return true;
  const bool is_carried = scene_->reported && process.in_cut;
  const bool in_cut = !coordinator_.is_idle() || is_carried || process.stop;
  const Memory& memory = process.memory;
  return in_cut && (memory.in == Memory::In::door || memory.in == Memory::In::waiting);
}

std::vector<std::vector<std::uint64_t>> World::received() const {
  std::vector<std::vector<std::uint64_t>> all;
  for (const Process& process : ranks_) all.push_back(process.memory.received);
  return all;
}

bool run_undisturbed(World& world) {
  for (;;) {
    bool moved = false;
    for (const Action& action : world.enabled()) {
      const bool program = action.what == Action::What::step ||
                           action.what == Action::What::deliver || action.what == Action::What::up;
      if (!program) continue;
      world.apply(action);
      moved = true;
      break;
    }
    if (!moved) return world.wrong_at_rest().empty();
  }
}

}  // namespace backstay::cut
