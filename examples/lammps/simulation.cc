#include "simulation.h"

#include <lammps/library.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace demo {
namespace {

// The deck without its `run` lines. Ends the program if there is no such file.
std::string read_deck(const std::string& path, MPI_Comm comm) {
  std::ifstream in(path);
  if (!in) {
    std::fprintf(stderr, "lammps_driver: cannot read %s\n", path.c_str());
    MPI_Abort(comm, 2);
  }
  std::ostringstream out;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first != "run") out << line << '\n';
  }
  return out.str();
}

}  // namespace

Simulation::Simulation(MPI_Comm comm, const std::string& deck, const Variables& variables,
                       const std::string& log)
    : comm_(comm) {
  std::vector<std::string> words = {"lammps", "-screen", "none", "-log", log};
  for (const auto& [name, value] : variables) words.insert(words.end(), {"-var", name, value});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  lammps_ = lammps_open(static_cast<int>(argv.size()), argv.data(), comm, nullptr);
  lammps_commands_string(lammps_, read_deck(deck, comm).c_str());
  stop_on_error(deck);
  command("thermo 0");
}

Simulation::~Simulation() { lammps_close(lammps_); }

void Simulation::run(std::int64_t steps) {
  command("run " + std::to_string(steps));
  // Between two neighbour lists atoms drift out of their owner's part of the box. The set-up of a
  // run of no steps sends each to its owner, so that what a rank saves now it can create again.
  command("run 0");
}

void Simulation::command(const std::string& text) {
  lammps_command(lammps_, text.c_str());
  stop_on_error(text);
}

Thermo Simulation::thermo() const {
  const auto value = [this](const char* keyword) { return lammps_get_thermo(lammps_, keyword); };
  return {step(), value("temp"), value("pe"), value("etotal"), value("press")};
}

std::int64_t Simulation::step() const {
  return *static_cast<std::int64_t*>(lammps_extract_global(lammps_, "ntimestep"));
}

std::int64_t Simulation::atoms() const {
  return static_cast<std::int64_t>(lammps_get_natoms(lammps_));
}

void Simulation::stop_on_error(const std::string& what) const {
  if (!lammps_config_has_exceptions() || !lammps_has_error(lammps_)) return;
  std::array<char, 1024> text{};
  lammps_get_last_error_message(lammps_, text.data(), static_cast<int>(text.size()));
  std::fprintf(stderr, "lammps_driver: %s: %s\n", what.c_str(), text.data());
  MPI_Abort(comm_, 3);
}

}  // namespace demo
