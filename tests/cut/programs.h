// Small programs that the exhaustive test plays, by what they are meant to break.
#pragma once

#include <string>

#include "cut/world.h"

namespace backstay::cut {

struct Named {
  std::string name;
  Scene scene;
  bool always_saves = false;  // no process ends before the cut
};
// `large`: those that take minutes.
std::vector<Named> small_programs(bool large = false);

namespace op {
using What = Op::What;
inline Op send(RankNumber to, std::uint32_t tag = 0) { return {What::send, to, tag, 0, 0}; }
inline Op ssend(RankNumber to, std::uint32_t tag = 0) { return {What::ssend, to, tag, 0, 0}; }
inline Op recv(RankNumber from, std::uint32_t tag = 0) { return {What::recv, from, tag, 0, 0}; }
inline Op barrier(std::uint32_t comm = 0) { return {What::barrier, 0, 0, comm, 0}; }
inline Op bcast(RankNumber root, std::uint32_t comm = 0) { return {What::bcast, root, 0, comm, 0}; }
inline Op reduce(RankNumber root, std::uint32_t comm = 0) {
  return {What::reduce, root, 0, comm, 0};
}
inline Op ibarrier(std::uint32_t comm = 0) { return {What::ibarrier, 0, 0, comm, 0}; }
inline Op ibcast(RankNumber root, std::uint32_t comm = 0) {
  return {What::ibcast, root, 0, comm, 0};
}
inline Op wait() { return {What::wait, 0, 0, 0, 0}; }
inline Op create(std::uint32_t child, std::uint32_t comm = 0) {
  return {What::create, 0, 0, comm, child};
}
inline Op free(std::uint32_t comm) { return {What::free, 0, 0, comm, 0}; }
inline Op linger() { return {What::linger, 0, 0, 0, 0}; }
}  // namespace op

}  // namespace backstay::cut
