// LAMMPS by its library. Usage: lammps DECK
#include <lammps/library.h>
#include <mpi.h>

int main(int argc, char** argv) {
  char* words[] = {"lammps", "-log", "none"};
  MPI_Init(&argc, &argv);
  void* lammps = lammps_open(3, words, MPI_COMM_WORLD, NULL);
  lammps_file(lammps, argv[1]);
  lammps_close(lammps);
  MPI_Finalize();
  return 0;
}
