// The control plane of a World: actions, what the machines put out, and what is checked.
#include <algorithm>
#include <numeric>
#include <utility>

#include "cut/world.h"

namespace backstay::cut {

std::string name_of(const Action& action) {
  static const char* const names[] = {"request", "step",    "deliver", "drain", "stand",
                                      "save",    "up",      "pass_on", "down",  "deadline",
                                      "kill",    "cut_off", "told"};
  std::string name = names[static_cast<std::size_t>(action.what)];
  name += " " + std::to_string(action.rank);
  if (action.what == Action::What::deliver) name += " from " + std::to_string(action.peer);
  return name;
}

std::vector<Action> World::enabled() const {
  using What = Action::What;
  std::vector<Action> found;
  const auto count = static_cast<RankNumber>(ranks_.size());
  const auto add = [&](bool may, What what, RankNumber rank, RankNumber peer = 0) {
    if (may) found.push_back({what, rank, peer});
  };
  for (RankNumber rank = 0; rank < count; ++rank) {
    const Process& process = ranks_[rank];
    add(may_step(rank), What::step, rank);
    for (RankNumber from = 0; from < count; ++from) {
      add(!net_[from][rank].empty() && !process.dead, What::deliver, rank, from);
    }
    add(may_drain(process), What::drain, rank);
    add(may_stand(process), What::stand, rank);
    add(process.saving && !process.imaged && !process.dead, What::save, rank);
    add(!process.up.empty(), What::up, rank);
    add(!process.down.empty() && !process.dead, What::down, rank);
    add(kills_ > 0 && !process.dead, What::kill, rank);
    add(breaks_ > 0 && !process.dead && !process.cut_off, What::cut_off, rank);
  }
  for (RankNumber agent = 0; agent < agents_.size(); ++agent) {
    add(!agents_[agent].up.empty(), What::pass_on, agent);
  }
  add(requests_ > 0, What::request, 0);
  add(untold_ > 0, What::told, 0);
  add(deadlines_ > 0 && !coordinator_.is_idle(), What::deadline, 0);
  return found;
}

bool World::is_at_rest() const {
  const auto actions = enabled();
  return std::all_of(actions.begin(), actions.end(), [](const Action& action) {
    return action.what == Action::What::kill || action.what == Action::What::cut_off ||
           action.what == Action::What::deadline;
  });
}

void World::apply(const Action& action) {
  switch (action.what) {
    case Action::What::request:
    case Action::What::up:
    case Action::What::pass_on:
    case Action::What::deadline:
    case Action::What::told: apply_to_coordinator(action); break;
    case Action::What::kill:
    case Action::What::cut_off: break_part(action); break;
    default: apply_to_rank(action);
  }
  if (action.what != Action::What::pass_on) collect(action.rank);
  collect_coordinator();
}

void World::apply_to_rank(const Action& action) {
  Process& process = ranks_[action.rank];
  if (action.what == Action::What::step) {
    step(action.rank);
  } else if (action.what == Action::What::deliver) {
    process.arrived.push_back(net_[action.peer][action.rank].front());
    net_[action.peer][action.rank].pop_front();
  } else if (action.what == Action::What::drain) {
    process.machine.took_in(process.arrived.front().from);
    process.memory.drained.push_back(process.arrived.front());
    process.arrived.erase(process.arrived.begin());
  } else if (action.what == Action::What::stand) {
    process.stood = true;
    process.machine.stands();
  } else if (action.what == Action::What::save) {
    process.imaged = true;
    process.machine.saved();
    if (scene_->imaged) scene_->imaged(action.rank);
  } else {
    const Order order = process.down.front();
    process.down.pop_front();
    process.in_cut = process.in_cut || order.what == Order::What::run_on;
    if (order.what == Order::What::save) process.version = order.version;
    process.machine.receive(order);
  }
}

void World::apply_to_coordinator(const Action& action) {
  if (action.what == Action::What::request) {
    --requests_;
    if (coordinator_.is_idle()) collectives = 0;
    coordinator_.request();
    if (!is_whole_) coordinator_.give_up("a rank is lost");
  } else if (action.what == Action::What::up) {
    const Report report = ranks_[action.rank].up.front();
    ranks_[action.rank].up.pop_front();
    hear(report, action.rank);
  } else if (action.what == Action::What::pass_on) {
    const Report report = agents_[action.rank].up.front();
    agents_[action.rank].up.pop_front();
    reports_.put(action.rank, report);
    coordinator_.receive(reports_.joined());
  } else if (action.what == Action::What::deadline) {
    --deadlines_;
    coordinator_.give_up("deadline");
  } else {
    --untold_;
    is_whole_ = false;
    coordinator_.give_up("a rank is lost");
  }
}

void World::break_part(const Action& action) {
  Process& process = ranks_[action.rank];
  ++untold_;
  if (action.what == Action::What::kill) {
    --kills_;
    process.dead = true;
  } else {
    --breaks_;
    process.cut_off = true;
    process.machine.lose_coordinator();
  }
}

void World::hear(const Report& report, std::uint32_t child) {
  if (scene_->reported) return scene_->reported(child, report);
  if (scene_->arity == 0) {
    reports_.put(child, report);
    coordinator_.receive(reports_.joined());
    return;
  }
  Agent& agent = agents_[child / scene_->arity];
  agent.reports.put(child, report);
  agent.up.push_back(agent.reports.joined());
}

void World::collect(RankNumber rank) {
  Process& process = ranks_[rank];
  for (RankOutput& output : process.machine.take()) {
    if (auto* report = std::get_if<Report>(&output)) {
      if (!process.cut_off) process.up.push_back(std::move(*report));
    } else if (std::holds_alternative<Wake>(output)) {
      process.awake = true;
    } else if (std::holds_alternative<Stop>(output)) {
      process.stop = true;
    } else if (std::holds_alternative<Save>(output)) {
      process.saving = true;
      process.image = process.memory;
      process.image_machine = process.machine;
    } else {
      process.in_cut = process.stop = process.stood = process.saving = process.imaged = false;
      process.awake = true;
    }
  }
}

void World::collect_coordinator() {
  for (const CoordinatorOutput& output : coordinator_.take()) {
    if (const auto* order = std::get_if<Order>(&output)) {
      if (order->what == Order::What::save && scene_->breaks == 0) check_cut();
      rounds = order->round;
      for (Process& process : ranks_) {
        if (!process.cut_off && !process.dead) process.down.push_back(*order);
      }
      continue;
    }
    const auto& ended = std::get<Ended>(output);
    ++(ended.saved ? saved : given_up);
    if (ended.saved) check_images();
  }
}

// When the coordinator orders to save: nothing is under way, and no member of a communicator has
// begun a collective call that another one has before it.
void World::check_cut() {
  for (RankNumber rank = 0; rank < ranks_.size(); ++rank) {
    const Process& process = ranks_[rank];
    const std::string who = "rank " + std::to_string(rank);
    if (!process.stood) broken = who + " runs while the cut is saved";
    if (process.memory.in == Memory::In::collective) broken = who + " is in a collective call";
    if (!process.arrived.empty()) broken = who + " has messages in MPI";
    for (const Pending& call : process.memory.pending) {
      if (!may_leave(process, call)) broken = who + " has begun a call that cannot complete";
    }
    for (RankNumber to = 0; to < ranks_.size(); ++to) {
      if (!net_[rank][to].empty()) broken = "a message of " + who + " is under way";
    }
  }
  for (std::size_t comm = 0; comm < scene_->members.size(); ++comm) {
    for (const RankNumber member : scene_->members[comm]) {
      const RankNumber first = scene_->members[comm].front();
      if (ranks_[member].memory.entered[comm] != ranks_[first].memory.entered[comm])
        broken = "members of a communicator differ in its clock";
    }
  }
}

void World::check_images() {
  std::vector<Image> images;
  for (RankNumber rank = 0; rank < ranks_.size(); ++rank) {
    auto image = take_image(rank);
    if (!image) {
      broken = "the cut has no image of rank " + std::to_string(rank);
      return;
    }
    images.push_back(std::move(*image));
  }
  if (const std::string why = start_from(images); !why.empty()) broken = why;
}

std::optional<World::Image> World::take_image(RankNumber rank) {
  Process& process = ranks_[rank];
  if (!process.image) return std::nullopt;
  Image image{*std::exchange(process.image, {}), *std::exchange(process.image_machine, {})};
  return image;
}

std::string World::start_from(const std::vector<Image>& images) const {
  Scene scene = *scene_;
  scene.requests = scene.deadlines = scene.kills = scene.breaks = 0;
  scene.reported = {};
  scene.imaged = {};
  World world(scene);
  for (RankNumber rank = 0; rank < ranks_.size(); ++rank) {
    Process& now = world.ranks_[rank];
    now.memory = images[rank].memory;
    now.machine = images[rank].machine;
    now.machine.lose_coordinator();
    now.machine.take();
    if (now.memory.in == Memory::In::door) now.memory.in = Memory::In::program;
  }
  return run_undisturbed(world) ? "" : "after a restart: " + world.wrong_at_rest();
}

void World::lose_agent(RankNumber rank) {
  Process& process = ranks_[rank];
  process.cut_off = true;
  process.up.clear();
  process.down.clear();
  process.machine.lose_coordinator();
  collect(rank);
}

void World::find_agent(RankNumber rank) {
  ranks_[rank].cut_off = false;
  ranks_[rank].machine.find_coordinator();
}

std::string World::wrong_at_rest() const {
  if (!broken.empty()) return broken;
  const bool died = std::any_of(ranks_.begin(), ranks_.end(),
                                [](const Process& process) { return process.dead; });
  if (!coordinator_.is_idle()) return "the cut does not end";
  for (RankNumber rank = 0; rank < ranks_.size(); ++rank) {
    const Process& process = ranks_[rank];
    const std::string who = "rank " + std::to_string(rank);
    if (died) continue;  // MPI ends the others
    const Op* op = next(process);
    const bool lingers = op != nullptr && op->what == Op::What::linger;
    if (process.stop) return who + " stands for ever";
    if (!lingers && process.memory.in != Memory::In::ended)
      return who + " stays in call " + std::to_string(process.memory.at);
  }
  if (!died && !scene_->any && !scene_->expected.empty() && received() != scene_->expected)
    return "messages came in another order, or twice, or not at all";
  return "";
}

}  // namespace backstay::cut
