// An electromagnetic wave in a cylindrical guide, with MPI and Backstay; see README.md.
// mpirun -n 4 ./waveguide [steps, or periods: 2.5T] [mesh] [degree] [mode]
#include <mpi.h>

#include <backstay/backstay_mpi.hpp>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "maxwell.h"
#include "mesh.h"
#include "mode.h"

namespace {

struct Run {
  guide::Mesh mesh;
  guide::Basis basis;
  guide::Mode mode;
  guide::Maxwell maxwell;
  int rank = 0;
  std::int64_t n = 0, period_steps;
  std::vector<std::int64_t> cells;  // hexahedra between the points, for an export

  Run(const std::string& name, int degree, const std::string& mode_name)
      : mesh(guide::read_mesh(name, MPI_COMM_WORLD)),
        basis(degree),
        mode(mode_name, mesh),
        maxwell(mesh, basis, MPI_COMM_WORLD),
        period_steps(4 * std::ceil(mode.period() / maxwell.largest_step() / 4)) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (std::size_t p = 0; p < maxwell.points.size(); ++p) {
      const auto values = mode.at(maxwell.points[p], 0);
      for (std::size_t c = 0; c < values.size(); ++c) maxwell.fields[c][p] = values[c];
    }
    for (std::int64_t e = mesh.first; e < mesh.first + mesh.count; ++e)
      for (int k = 0; k < degree; ++k)
        for (int j = 0; j < degree; ++j)
          for (int i = 0; i < degree; ++i)
            add_cell(((e * basis.n + k) * basis.n + j) * basis.n + i);
  }

  void add_cell(std::int64_t corner) {  // in VTK's order
    const int up = basis.n, deep = basis.n * basis.n;
    for (int beside : {0, 1, up + 1, up}) cells.push_back(corner + beside);
    for (int beside : {0, 1, up + 1, up}) cells.push_back(corner + deep + beside);
  }

  double dt() const { return mode.period() / static_cast<double>(period_steps); }

  // In the norm of L2, relative. Added up in the order of the elements: the same for any number of
  // ranks.
  double error() const {
    const std::size_t all = mesh.elements.size(), cube = maxwell.points.size() / mesh.count;
    std::vector<double> sums(2 * all, 0.0);
    const double t = dt() * static_cast<double>(n);
    for (std::size_t p = 0; p < maxwell.points.size(); ++p) {
      const auto exact = mode.at(maxwell.points[p], t);
      const std::size_t e = mesh.first + p / cube;
      for (std::size_t c = 0; c < exact.size(); ++c) {
        const double off = maxwell.fields[c][p] - exact[c];
        sums[e] += maxwell.volume[p] * off * off;
        sums[all + e] += maxwell.volume[p] * exact[c] * exact[c];
      }
    }
    MPI_Allreduce(MPI_IN_PLACE, sums.data(), static_cast<int>(2 * all), MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);
    double square = 0, norm = 0;
    for (std::size_t e = 0; e < all; ++e) square += sums[e], norm += sums[all + e];
    return std::sqrt(square / norm);
  }

  // The bits of all elements of the fields added up, as in examples/heat.
  std::uint64_t checksum() const {
    std::uint64_t sum = 0;
    for (const auto& field : maxwell.fields)
      for (double value : field) sum += std::bit_cast<std::uint64_t>(value);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return sum;
  }
};

// Each field's block of the global array, and what an export needs to draw it.
std::vector<backstay::Region> protect(backstay::Session& session, Run& run) {
  std::vector<backstay::Region> regions;
  const std::uint64_t cube = run.maxwell.points.size() / run.mesh.count;
  const std::uint64_t cells = run.cells.size() / 8 / run.mesh.count;
  const auto add = [&](const char* name, auto* data, std::uint64_t rows, std::uint64_t columns) {
    const std::uint64_t own = run.mesh.count * rows, from = run.mesh.first * rows;
    backstay::Place place{{own}, {run.mesh.elements.size() * rows}, {from}};
    if (columns > 1)
      place = {{own, columns}, {run.mesh.elements.size() * rows, columns}, {from, 0}};
    regions.push_back(session.protect_array(name, data, place).value());
  };
  regions.push_back(session.protect("step", run.n).value());
  const char* names[] = {"Ex", "Ey", "Ez", "Hx", "Hy", "Hz"};
  for (std::size_t c = 0; c < 6; ++c) add(names[c], run.maxwell.fields[c].data(), cube, 1);
  add("xyz", run.maxwell.points[0].data(), cube, 3);
  add("cells", run.cells.data(), cells, 8);
  return regions;
}

void advance(Run& run, std::int64_t steps) {
  auto session = backstay::open_mpi(MPI_COMM_WORLD).value();
  const auto regions = protect(session, run);
  const auto version = session.restart();
  if (!version && version.error() != backstay::errc::none) backstay::check(version.error());
  const auto say = [&](const char* what) {
    if (run.rank == 0)
      std::printf("%s %llu step %lld\n", what, static_cast<unsigned long long>(session.version()),
                  static_cast<long long>(run.n));
    std::fflush(stdout);
  };
  if (version) say("restart version");
  while (run.n < steps && !session.stop_requested()) {
    run.maxwell.step(run.dt());
    ++run.n;
    if (session.due() && !session.checkpoint()) say("version");
  }
  const double error = run.error();
  const std::uint64_t sum = run.checksum();
  if (run.rank == 0)
    std::printf("done step %lld error %.6e checksum %016llX\n", static_cast<long long>(run.n),
                error, static_cast<unsigned long long>(sum));
}

void start(const std::string& steps, const std::string& mesh, int degree, const std::string& mode) {
  if (degree < 1 || degree > 20) throw std::invalid_argument("the degree is 1 to 20");
  if (!guide::Mode::is_one(mode))
    throw std::invalid_argument("the mode is TE11, TE01, TM01 or TM11");
  Run run(mesh, degree, mode);
  if (run.rank == 0)
    std::printf("mesh: %zu elements, read in %.4f s\ndegree %d: %zu points, %lld steps a period\n",
                run.mesh.elements.size(), run.mesh.reading_s, degree,
                run.mesh.elements.size() * run.maxwell.points.size() / run.mesh.count,
                static_cast<long long>(run.period_steps));
  const double number = std::stod(steps);
  advance(run, std::llround(steps.back() == 'T' ? number * run.period_steps : number));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const auto word = [&](int i, const char* otherwise) { return argc > i ? argv[i] : otherwise; };
  try {
    start(word(1, "2T"), word(2, "guide"), std::atoi(word(3, "4")), word(4, "TE11"));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "waveguide: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
}
