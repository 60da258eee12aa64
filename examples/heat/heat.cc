// heat.c in C++20. mpirun -n 4 ./heat_cc [steps] [rows] [columns]
#include <mpi.h>

#include <algorithm>
#include <backstay/backstay_mpi.hpp>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

struct Plate {
  int rank = 0, ranks = 1;
  std::size_t all_rows = 0, first = 0, rows = 0, cols = 0;  // rows: of this rank
  std::vector<double> u, next;                              // with one row more above and below

  Plate(std::size_t all, std::size_t columns) : all_rows(all), cols(columns) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    first = all_rows * rank / ranks;
    rows = all_rows * (rank + 1) / ranks - first;
    u.assign((rows + 2) * cols, 0.0);
    next = u;
    if (rank == 0) std::fill_n(u.begin(), cols, 100.0);  // the hot edge above row 0
  }

  void step() {
    const int up = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    const int down = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
    const int count = static_cast<int>(cols);
    double *top = &u[cols], *bottom = &u[rows * cols];
    MPI_Sendrecv(top, count, MPI_DOUBLE, up, 0, bottom + cols, count, MPI_DOUBLE, down, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(bottom, count, MPI_DOUBLE, down, 1, u.data(), count, MPI_DOUBLE, up, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (std::size_t i = 1; i <= rows; ++i)
      for (std::size_t k = i * cols + 1; k < (i + 1) * cols - 1; ++k)
        next[k] = u[k] + 0.1 * (((u[k - cols] + u[k + cols]) + (u[k - 1] + u[k + 1])) - 4.0 * u[k]);
    std::copy_n(&next[cols], rows * cols, top);
  }

  std::uint64_t checksum() const {
    std::uint64_t sum = 0;
    for (std::size_t k = cols; k < (rows + 1) * cols; ++k)
      sum += std::bit_cast<std::uint64_t>(u[k]);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return sum;
  }
};

void run(std::int64_t steps, Plate& plate) {
  auto session = backstay::open_mpi(MPI_COMM_WORLD).value();
  std::int64_t n = 0;
  auto n_region = session.protect("n", n).value();
  auto u_region = session
                      .protect_array("u", &plate.u[plate.cols],
                                     {.shape = {plate.rows, plate.cols},
                                      .global_shape = {plate.all_rows, plate.cols},
                                      .global_offset = {plate.first, 0}})
                      .value();
  auto version = session.restart();
  if (!version && version.error() != backstay::errc::none) backstay::check(version.error());
  const auto say = [&](const char* what) {
    if (plate.rank == 0)
      std::printf("%s %llu step %lld\n", what, static_cast<unsigned long long>(session.version()),
                  static_cast<long long>(n));
    std::fflush(stdout);
  };
  if (version) say("restart version");
  while (n < steps && !session.stop_requested()) {
    plate.step();
    ++n;
    if (session.due() && !session.checkpoint()) say("version");
  }
  const std::uint64_t sum = plate.checksum();
  if (plate.rank == 0)
    std::printf("done step %lld checksum %016llX\n", static_cast<long long>(n),
                static_cast<unsigned long long>(sum));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const auto number = [&](int i, int otherwise) {
    return argc > i ? std::atoi(argv[i]) : otherwise;
  };
  try {
    Plate plate(number(2, 512), number(3, 512));
    run(number(1, 1000), plate);
  } catch (const backstay::Error& error) {
    std::fprintf(stderr, "heat_cc: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
}
