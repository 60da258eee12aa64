// The library's start, before the program's own: asks the boot program for the lower half.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/mpi_library/again.h"
#include "capture/mpi_library/names.h"

extern "C" char** environ;

namespace backstay::mpi {

namespace {

[[noreturn]] void end(const char* why) {
  (void)!write(2, "backstay: ", 10);
  (void)!write(2, why, strlen(why));
  (void)!write(2, "\n", 1);
  _exit(126);
}

bool has_doors() {
  unsigned char present = 0;
  return mincore(reinterpret_cast<void*>(lower::doors_page), 4096, &present) == 0;
}

[[gnu::constructor]] void begin() {
  if (!has_doors()) {
    end("this is Backstay's library in place of the MPI library; it works in a program that is "
        "started by backstay-boot --mpi only. Is its folder in LD_LIBRARY_PATH by mistake?");
  }
  const auto start = reinterpret_cast<lower::StartDoor>(lower::start_door);
  const char* why = start(abi::library, environ);
  if (why != nullptr) end(why);
  const lower::Table& table = lower::table();
  if (table.functions_count != functions_count || table.functions_sum != sum_of_names()) {
    end("backstay-lower and this MPI library are of different builds of Backstay");
  }
  learn_objects();
}

}  // namespace

}  // namespace backstay::mpi
