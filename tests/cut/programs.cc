#include "cut/programs.h"

namespace backstay::cut {

namespace {

Scene of(Programs programs, std::vector<std::vector<RankNumber>> members = {}) {
  Scene scene;
  std::vector<RankNumber> all;
  for (RankNumber rank = 0; rank < programs.size(); ++rank) all.push_back(rank);
  scene.members.push_back(all);
  for (auto& one : members) scene.members.push_back(std::move(one));
  scene.programs = std::move(programs);
  return scene;
}

Scene lingering(Scene scene) {
  for (auto& program : scene.programs) program.push_back(op::linger());
  return scene;
}

Scene with(Scene scene, std::uint32_t requests, std::uint32_t deadlines, std::uint32_t kills,
           std::uint32_t breaks) {
  scene.requests = requests;
  scene.deadlines = deadlines;
  scene.kills = kills;
  scene.breaks = breaks;
  return scene;
}

Scene exchange() {
  return of({{op::send(1), op::recv(1), op::send(1), op::barrier()},
             {op::recv(0), op::send(0), op::barrier(), op::recv(0)}});
}
// A receives in another order than B sends.
Scene tags() {
  return of({{op::send(1, 1), op::barrier(), op::send(1, 2)},
             {op::barrier(), op::recv(0, 2), op::recv(0, 1)}});
}
Scene roots() {
  return of(
      {{op::bcast(0), op::reduce(1), op::send(1)}, {op::bcast(0), op::reduce(1), op::recv(0)}});
}

// Rank 2 has begun a call on {1, 2}, which 1 reaches only after a message that 0 sends behind a
// call on {0, 3}: without needs, 0 is held at that call and the cut never comes.
Scene across() {
  return of({{op::barrier(1), op::send(1)}, {op::recv(0), op::barrier(2)}, {op::barrier(2)}},
            {{0}, {1, 2}});
}
// And where the sender waits until its message is taken.
// The same, where any rank may send.
Scene across_any() {
  Scene scene = across();
  scene.programs[1][0].peer = any_rank;
  scene.any = true;
  return scene;
}
Scene across_taken() {
  return of({{op::barrier(1), op::recv(1)}, {op::ssend(0), op::barrier(2)}, {op::barrier(2)}},
            {{0}, {1, 2}});
}
// 1 waits for 0, which waits for 2, which is held.
Scene chain() {
  return of({{op::recv(2), op::send(1)},
             {op::recv(0), op::barrier(1)},
             {op::barrier(2), op::send(0), op::barrier(1)}},
            {{1, 2}, {2}});
}
Scene overlap() {
  return of({{op::barrier(1), op::barrier()},
             {op::barrier(1), op::barrier(2), op::barrier()},
             {op::barrier(2), op::barrier()}},
            {{0, 1}, {1, 2}});
}
Scene later() {
  return of({{op::ibarrier(), op::send(1), op::wait()}, {op::recv(0), op::ibarrier(), op::wait()}});
}
Scene later_bcast() {
  return of({{op::ibcast(0), op::wait(), op::send(1)}, {op::ibcast(0), op::recv(0), op::wait()}});
}
Scene makes() {
  return of({{op::create(1), op::bcast(0, 1), op::free(1), op::barrier()},
             {op::create(1), op::bcast(0, 1), op::free(1), op::barrier()},
             {op::create(1), op::barrier()}},
            {{0, 1}});
}
Scene makes_pair() {
  return of({{op::create(1), op::bcast(0, 1), op::send(1), op::free(1)},
             {op::create(1), op::bcast(0, 1), op::recv(0), op::free(1)}},
            {{0, 1}});
}
Scene any() {
  Scene scene = of({{op::recv(any_rank), op::recv(any_rank), op::barrier()},
                    {op::send(0), op::barrier()},
                    {op::send(0), op::barrier()}});
  scene.any = true;
  return scene;
}

}  // namespace

std::vector<Named> small_programs(bool large) {
  std::vector<Named> all = {
      {"exchange", lingering(exchange()), true},
      {"exchange, and the processes end", exchange()},
      {"exchange, two requests", with(lingering(exchange()), 2, 0, 0, 0), true},
      {"exchange, given up", with(lingering(exchange()), 1, 1, 0, 0)},
      {"exchange, a rank dies", with(lingering(exchange()), 1, 0, 1, 0)},
      {"exchange, a link is lost", with(lingering(exchange()), 1, 0, 0, 1)},
      {"tags", lingering(tags()), true},
      {"roots leave early", lingering(roots()), true},
      {"non-blocking", lingering(later()), true},
      {"non-blocking, with a root", lingering(later_bcast()), true},
      {"a communicator is made", lingering(makes_pair()), true},
      {"held behind another communicator", lingering(across()), true},
      {"held, and any rank may send", lingering(across_any()), true},
      {"held while a message waits to be taken", lingering(across_taken()), true},
      {"a chain of needs", lingering(chain()), true},
  };
  if (!large) return all;
  const std::vector<Named> more = {
      {"overlap", lingering(overlap()), true},
      {"three make a communicator", lingering(makes()), true},
      {"receives from any", lingering(any()), true},
      {"a chain of needs, given up, asked again", with(lingering(chain()), 2, 1, 0, 0)},
      {"overlap, and the processes end", overlap()},
      {"a communicator is made, a link is lost", with(lingering(makes_pair()), 1, 0, 0, 1)},
      {"exchange, two requests, all faults", with(lingering(exchange()), 2, 1, 1, 1)},
  };
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace backstay::cut
