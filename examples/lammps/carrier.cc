#include "carrier.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "atoms.h"

namespace demo {
namespace {

[[noreturn]] void give_up(MPI_Comm comm, const std::string& what) {
  std::fprintf(stderr, "lammps_driver: %s\n", what.c_str());
  MPI_Abort(comm, 4);
  std::abort();  // MPI_Abort is not declared to stay away
}

// True: a version was brought back. False: there is none yet.
bool restarted(backstay::Session& session, MPI_Comm comm) {
  const auto version = session.restart();
  if (!version && version.error() != backstay::errc::none)
    give_up(comm, "restart failed: " + backstay::last_message());
  return static_cast<bool>(version);
}

class ArrayCarrier final : public Carrier {
 public:
  ArrayCarrier(MPI_Comm comm, Deck deck) : comm_(comm), deck_(std::move(deck)) {}

  std::unique_ptr<Simulation> begin(backstay::Session& session) override {
    auto simulation = std::make_unique<Simulation>(comm_, deck_.path, deck_.variables, deck_.log);
    atoms_ = std::make_unique<Atoms>(*simulation);
    if (atoms_->protect(session)) give_up(comm_, "protect failed: " + backstay::last_message());
    if (restarted(session, comm_) && !atoms_->give_back(*simulation))
      give_up(comm_, "LAMMPS did not take back all atoms: was the deck changed?");
    return simulation;
  }

  void save(Simulation& simulation) override {
    if (!atoms_->take(simulation))
      give_up(comm_, "a rank has more atoms than the room protected for them");
  }

 private:
  MPI_Comm comm_;
  Deck deck_;
  std::unique_ptr<Atoms> atoms_;
};

// `write_restart DIR/atoms.%` writes DIR/atoms.base on rank 0 and DIR/atoms.R on rank R.
class FileCarrier final : public Carrier {
 public:
  FileCarrier(MPI_Comm comm, Deck deck) : comm_(comm), deck_(std::move(deck)) {}

  std::unique_ptr<Simulation> begin(backstay::Session& session) override {
    int rank = 0;
    MPI_Comm_rank(comm_, &rank);
    if (rank == 0) route(session, "atoms.base");
    const std::string mine = "atoms." + std::to_string(rank);
    const std::string path = route(session, mine);
    pattern_ = path.substr(0, path.size() - mine.size()) + "atoms.%";
    Variables variables = deck_.variables;
    if (restarted(session, comm_)) variables.emplace_back("from", pattern_);
    return std::make_unique<Simulation>(comm_, deck_.path, variables, deck_.log);
  }

  void save(Simulation& simulation) override { simulation.command("write_restart " + pattern_); }

 private:
  std::string route(backstay::Session& session, const std::string& name) {
    auto path = session.route_file(name);
    if (!path) give_up(comm_, "route_file failed: " + backstay::last_message());
    return *path;
  }

  MPI_Comm comm_;
  Deck deck_;
  std::string pattern_;
};

}  // namespace

std::unique_ptr<Carrier> make_array_carrier(MPI_Comm comm, Deck deck) {
  return std::make_unique<ArrayCarrier>(comm, std::move(deck));
}
std::unique_ptr<Carrier> make_file_carrier(MPI_Comm comm, Deck deck) {
  return std::make_unique<FileCarrier>(comm, std::move(deck));
}

}  // namespace demo
