// One LAMMPS instance over a communicator, run by a deck of its own and in slices of ours.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace demo {

using Variables = std::vector<std::pair<std::string, std::string>>;

struct Thermo {
  std::int64_t step = 0;
  double temperature = 0, potential = 0, total = 0, pressure = 0;  // in the deck's units
};

// All functions are collective. An error inside LAMMPS ends the program with its message.
class Simulation {
 public:
  // Runs all commands of the deck but `run`. `log`: LAMMPS's own log file, or "none".
  Simulation(MPI_Comm comm, const std::string& deck, const Variables& variables,
             const std::string& log);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Computes `steps` steps; afterwards every atom is with the rank that owns it.
  void run(std::int64_t steps);

  void command(const std::string& text);
  Thermo thermo() const;
  std::int64_t step() const;
  std::int64_t atoms() const;  // of all ranks
  void* handle() const { return lammps_; }
  MPI_Comm comm() const { return comm_; }

 private:
  void stop_on_error(const std::string& what) const;

  MPI_Comm comm_;
  void* lammps_ = nullptr;
};

}  // namespace demo
