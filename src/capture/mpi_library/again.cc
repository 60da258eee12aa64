#include "capture/mpi_library/again.h"

#include <stdio.h>
#include <time.h>

#include "capture/mpi_library/names.h"
#include "capture/mpi_library/renew.h"

namespace backstay::mpi {

namespace {

enum class Phase : uint32_t { before, initialized, finalized };
struct Place {
  int rank = -1;
  int ranks = -1;
};

// Memory of the program: an image holds it.
Phase phase = Phase::before;
int level = 0;
Place saved;
uint64_t main_thread = 0;  // the FS base of the thread that called MPI_Init: a restart keeps it
bool again = false;
bool ended_here = false;  // in this life
bool under_way = false;
double origin = 0;  // by the wall clock, of MPI_Wtime
double shift = 0;   // from the real MPI's
double told = 0;    // the last

double wall_clock() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void renew_time() {
  const double real = call<double>(index_MPI_Wtime);
  const double now = wall_clock() - origin;
  shift = (now > told ? now : told) - real;
}

Place find_place() {
  Place place;
  call<int>(index_MPI_Comm_rank, abi::world(), &place.rank);
  call<int>(index_MPI_Comm_size, abi::world(), &place.ranks);
  return place;
}

void check_place() {
  const Place place = find_place();
  if (place.rank == saved.rank && place.ranks == saved.ranks) return;
  char text[256];
  snprintf(text, sizeof text,
           "cannot restart: rank %d of %d was saved, and MPI has started this process as "
           "rank %d of %d",
           saved.rank, saved.ranks, place.rank, place.ranks);
  end_program(text);
}

void initialize() {
  int provided = 0;
  const int result = call_as_job(index_MPI_Init_thread, 0, 0, static_cast<uint64_t>(level),
                                 reinterpret_cast<uint64_t>(&provided));
  if (result != 0) end_program("cannot restart: MPI_Init_thread has failed");
  if (provided < level) {
    end_program("cannot restart: this MPI gives the program fewer threads than the one before");
  }
}

}  // namespace

void check_build() {
  const lower::Table& table = lower::table();
  if (table.functions_count == functions_count && table.functions_sum == sum_of_names()) return;
  end_program("backstay-lower and this MPI library are of different builds of Backstay");
}

void note_start(int provided) {
  phase = Phase::initialized;
  level = provided;
  saved = find_place();
  main_thread = own_fs();
  origin = wall_clock() - call<double>(index_MPI_Wtime);
}

bool is_main_thread() { return own_fs() == main_thread; }

void note_end() {
  phase = Phase::finalized;
  ended_here = true;
}

double program_time(double real) {
  const double now = real + shift;
  if (now > told) told = now;
  return now;
}

bool has_ended_here() { return ended_here; }
bool has_ended_before() { return again && phase == Phase::finalized && !ended_here; }

void begin_again() {
  if (under_way) return;
  under_way = true;
  again = true;
  ended_here = false;
  check_build();
  if (phase == Phase::initialized) initialize();
  learn_objects();
  if (phase == Phase::initialized) {
    check_place();
    renew_time();
    renew_handles();
  }
  under_way = false;
}

}  // namespace backstay::mpi
