"""A small LAMMPS run that writes restart files, a dump and a data file into the working folder."""

import ctypes

COMMANDS = """
log none
units lj
atom_style atomic
lattice fcc 0.8442
region b block 0 6 0 6 0 6
create_box 1 b
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
dump d all atom 10 dump
restart 10 restart.*
run 30
write_restart last
write_data data
"""

library = ctypes.CDLL("liblammps.so.0")
library.lammps_open_no_mpi.restype = ctypes.c_void_p
instance = ctypes.c_void_p(library.lammps_open_no_mpi(0, None, None))
for command in COMMANDS.strip().splitlines():
    library.lammps_command(instance, command.encode())
library.lammps_close(instance)
