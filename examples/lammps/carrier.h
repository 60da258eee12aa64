// How the state of the simulation gets into versions and out of them. Two ways, chosen at start:
// arrays that the driver protects, or the restart files that LAMMPS writes by itself.
#pragma once

#include <memory>
#include <string>

#include "backstay/backstay.hpp"
#include "simulation.h"

namespace demo {

struct Deck {
  std::string path;
  Variables variables;
  std::string log;
};

// All functions are collective. Errors end the program with a message: without its state back the
// driver must not compute.
class Carrier {
 public:
  virtual ~Carrier() = default;

  // The simulation as the newest version has it, or as the deck starts it where there is none.
  virtual std::unique_ptr<Simulation> begin(backstay::Session& session) = 0;

  // Makes the protected regions or routed files say what the simulation holds now.
  virtual void save(Simulation& simulation) = 0;
};

std::unique_ptr<Carrier> make_array_carrier(MPI_Comm comm, Deck deck);
std::unique_ptr<Carrier> make_file_carrier(MPI_Comm comm, Deck deck);

}  // namespace demo
