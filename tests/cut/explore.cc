#include "cut/explore.h"

#include <unordered_set>

#include "cut/digest.h"

namespace backstay::cut {

namespace {

struct Place {
  World world;
  std::vector<Action> actions;
  std::size_t next = 0;
};

std::string way_to(const std::vector<Place>& path) {
  std::string way;
  for (const Place& place : path) {
    if (place.next > 0) way += "\n  " + name_of(place.actions[place.next - 1]);
  }
  return way;
}

}  // namespace

Found explore(const Scene& scene, std::uint64_t states_max) {
  Found found;
  std::unordered_set<std::uint64_t> seen;
  std::vector<Place> path;
  const auto visit = [&](World&& world) {
    if (!seen.insert(digest_of(world)).second) return;
    auto actions = world.enabled();
    if (world.is_at_rest()) {
      ++found.ends;
      ++(world.saved > 0 ? found.with_cut : found.without);
      if (const std::string wrong = world.wrong_at_rest(); !wrong.empty()) world.broken = wrong;
    }
    if (!world.broken.empty()) {
      found.broken = world.broken + way_to(path);
      return;
    }
    path.push_back({std::move(world), std::move(actions), 0});
  };
  visit(World(scene));
  while (!path.empty() && found.broken.empty()) {
    if (seen.size() > states_max) {
      found.complete = false;
      break;
    }
    Place& place = path.back();
    if (place.next == place.actions.size()) {
      path.pop_back();
      continue;
    }
    World world = place.world;
    world.apply(place.actions[place.next++]);
    visit(std::move(world));
  }
  found.states = seen.size();
  return found;
}

Scene with_expected(Scene scene) {
  Scene undisturbed = scene;
  undisturbed.requests = 0;
  undisturbed.expected.clear();
  World world(undisturbed);
  if (run_undisturbed(world)) scene.expected = world.received();
  return scene;
}

}  // namespace backstay::cut
