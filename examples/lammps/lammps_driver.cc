// A molecular-dynamics run that survives: LAMMPS in slices, Backstay between them.
//
//   mpirun -n 4 lammps_driver in.lj [--steps N] [--slice N] [--files] [--var NAME VALUE]... [--log
//   FILE]
//                             [--config FILE]
//
// Rank 0 prints one event a line, for people and for scripts:
//   pids 101 102 103 104                      of all ranks
//   start step 0 atoms 16384                  or: restart version 3 step 150 atoms 16384
//   thermo 50 1.2 -6.1 -4.6 1.3               step, temperature, potential, total energy, pressure
//   version 1 step 50 save_s 0.01 blocked_s 0.002
//   done step 400
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "backstay/backstay_mpi.hpp"
#include "carrier.h"

namespace demo {
namespace {

struct Options {
  Deck deck{.path = "", .variables = {}, .log = "log.lammps"};
  std::int64_t steps = 400;  // last step
  std::int64_t slice = 50;   // steps between two calls of Backstay
  bool files = false;
  std::string config;
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const int left = argc - 1 - i;
    if (word == "--files")
      options.files = true;
    else if (word == "--steps" && left >= 1)
      options.steps = std::atoll(argv[++i]);
    else if (word == "--slice" && left >= 1)
      options.slice = std::atoll(argv[++i]);
    else if (word == "--log" && left >= 1)
      options.deck.log = argv[++i];
    else if (word == "--config" && left >= 1)
      options.config = argv[++i];
    else if (word == "--var" && left >= 2) {
      options.deck.variables.emplace_back(argv[i + 1], argv[i + 2]);
      i += 2;
    } else if (word[0] != '-' && options.deck.path.empty())
      options.deck.path = word;
    else
      return false;
  }
  return !options.deck.path.empty() && options.steps > 0 && options.slice > 0;
}

int rank_of(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

void print_pids(MPI_Comm comm) {
  int ranks = 1, mine = static_cast<int>(getpid());
  MPI_Comm_size(comm, &ranks);
  std::vector<int> pids(static_cast<std::size_t>(ranks));
  MPI_Gather(&mine, 1, MPI_INT, pids.data(), 1, MPI_INT, 0, comm);
  if (rank_of(comm) != 0) return;
  std::printf("pids");
  for (int pid : pids) std::printf(" %d", pid);
  std::printf("\n");
}

void print_thermo(const Simulation& simulation) {
  const Thermo t = simulation.thermo();  // collective: not behind the next line
  if (rank_of(simulation.comm()) != 0) return;
  std::printf("thermo %lld %.17g %.17g %.17g %.17g\n", static_cast<long long>(t.step),
              t.temperature, t.potential, t.total, t.pressure);
}

// A failed checkpoint is reported; the run goes on, and the next one may succeed.
void checkpoint(backstay::Session& session, Carrier& carrier, Simulation& simulation) {
  const double begin = MPI_Wtime();
  carrier.save(simulation);
  double seconds[2] = {MPI_Wtime() - begin, 0};
  const std::error_code code = session.checkpoint();
  seconds[1] = MPI_Wtime() - begin - seconds[0];
  const int rank = rank_of(simulation.comm());
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : seconds, seconds, 2, MPI_DOUBLE, MPI_MAX, 0,
             simulation.comm());
  if (rank != 0) return;
  if (code)
    std::printf("no version at step %lld: %s\n", static_cast<long long>(simulation.step()),
                backstay::last_message().c_str());
  else
    std::printf("version %llu step %lld save_s %.6f blocked_s %.6f\n",
                static_cast<unsigned long long>(session.version()),
                static_cast<long long>(simulation.step()), seconds[0], seconds[1]);
}

void run(const Options& options, backstay::Session& session, MPI_Comm comm) {
  const auto carrier = options.files ? make_file_carrier(comm, options.deck)
                                     : make_array_carrier(comm, options.deck);
  const auto simulation = carrier->begin(session);
  const bool first = rank_of(comm) == 0;
  const long long atoms = simulation->atoms(), step = simulation->step();
  if (first && session.version() == 0) std::printf("start step %lld atoms %lld\n", step, atoms);
  if (first && session.version() != 0)
    std::printf("restart version %llu step %lld atoms %lld\n",
                static_cast<unsigned long long>(session.version()), step, atoms);
  while (simulation->step() < options.steps && !session.stop_requested()) {
    simulation->run(std::min(options.slice, options.steps - simulation->step()));
    print_thermo(*simulation);
    if (session.due()) checkpoint(session, *carrier, *simulation);
  }
  if (first) std::printf("done step %lld\n", static_cast<long long>(simulation->step()));
}

int main_with_mpi(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: lammps_driver DECK [--steps N] [--slice N] [--files] "
                 "[--var NAME VALUE]... [--log FILE] [--config FILE]\n");
    return 2;
  }
  print_pids(MPI_COMM_WORLD);
  auto session = backstay::open_mpi(MPI_COMM_WORLD, options.config);
  if (!session) {
    std::fprintf(stderr, "lammps_driver: %s\n", backstay::last_message().c_str());
    return 1;
  }
  run(options, *session, MPI_COMM_WORLD);
  return 0;
}

}  // namespace
}  // namespace demo

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a line is an event: out with it
  const int code = demo::main_with_mpi(argc, argv);
  MPI_Finalize();
  return code;
}
