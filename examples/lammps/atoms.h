// The atoms of one rank: out of LAMMPS into plain arrays that Backstay protects, and back.
#pragma once

#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include "backstay/backstay.hpp"
#include "simulation.h"

namespace demo {

// Room for the atoms of one rank. Their number changes from slice to slice, so the arrays have a
// fixed capacity and a counter says how much of it is in use.
class Atoms {
 public:
  // Collective. Room for 1.5 times an average rank's share.
  explicit Atoms(const Simulation& simulation);

  // Names everything here as regions. They live as long as this object.
  std::error_code protect(backstay::Session& session);

  // Copies this rank's atoms and the step out of LAMMPS. False if they exceed the capacity.
  bool take(const Simulation& simulation);

  // Collective. Puts atoms and step in place of those that LAMMPS has, in the order in which they
  // were: it decides the order of additions, hence the last bits of every force.
  // False where LAMMPS did not take all of them.
  bool give_back(Simulation& simulation);

 private:
  std::int64_t step_ = 0;
  std::int64_t count_ = 0;
  std::vector<int> tag_, type_, image_;
  std::vector<double> x_, v_;
  std::vector<backstay::Region> regions_;
};

}  // namespace demo
