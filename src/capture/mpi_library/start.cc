// The library's start, before the program's own: asks the boot program for the lower half.
#include <sys/mman.h>
#include <unistd.h>

#include "capture/mpi_library/again.h"
#include "capture/mpi_library/names.h"

extern "C" char** environ;

namespace backstay::mpi {

namespace {

bool has_doors() {
  unsigned char present = 0;
  return mincore(reinterpret_cast<void*>(lower::doors_page), 4096, &present) == 0;
}

[[gnu::constructor]] void begin() {
  if (!has_doors()) {
    end_program(
        "this is Backstay's library in place of the MPI library; it works in a program that is "
        "started by backstay-boot --mpi only. Is its folder in LD_LIBRARY_PATH by mistake?");
  }
  const auto start = reinterpret_cast<lower::StartDoor>(lower::start_door);
  const char* why = start(abi::library, environ);
  if (why != nullptr) end_program(why);
  check_build();
  learn_objects();
}

// The program exits, behind MPI_Finalize.
[[gnu::destructor]] void end() {
  if (!has_ended_here() || lower::table().process != getpid()) return;
  const InCall in_call;
  lower::table().do_job(lower::table().leave, nullptr);
}

}  // namespace

}  // namespace backstay::mpi
