"""heat.c in Python, with mpi4py and numpy. mpirun -n 4 python heat.py [steps] [rows] [columns]"""

import sys

import numpy as np
from mpi4py import MPI

import backstay

comm = MPI.COMM_WORLD
rank, ranks = comm.rank, comm.size


def step(u: np.ndarray) -> None:
    """One step of the plate; u has one row more above and below."""
    up = rank - 1 if rank > 0 else MPI.PROC_NULL
    down = rank + 1 if rank < ranks - 1 else MPI.PROC_NULL
    comm.Sendrecv(u[1], up, 0, u[-1], down, 0)
    comm.Sendrecv(u[-2], down, 1, u[0], up, 1)
    c = u[1:-1, 1:-1]
    c[:] = c + 0.1 * (((u[:-2, 1:-1] + u[2:, 1:-1]) + (u[1:-1, :-2] + u[1:-1, 2:])) - 4.0 * c)


def checksum(u: np.ndarray) -> int:
    """The bits of all elements added up, modulo 2**64."""
    mine = int(np.ascontiguousarray(u[1:-1]).view(np.uint64).sum(dtype=np.uint64))
    return comm.allreduce(mine) % 2**64


def say(what: str) -> None:
    if rank == 0:
        print(what, flush=True)


def main(steps: int = 1000, all_rows: int = 512, cols: int = 512) -> None:
    first = all_rows * rank // ranks
    rows = all_rows * (rank + 1) // ranks - first
    u = np.zeros((rows + 2, cols))
    if rank == 0:
        u[0] = 100.0  # the hot edge above row 0
    n = np.zeros(1, np.int64)

    with backstay.init(comm):
        backstay.protect("n", n)
        backstay.protect("u", u[1:-1], global_shape=(all_rows, cols), global_offset=(first, 0))
        version = backstay.restart()
        if version is not None:
            say(f"restart version {version} step {n[0]}")

        while n[0] < steps and not backstay.stop_requested():
            step(u)
            n[0] += 1
            if backstay.due():
                try:
                    say(f"version {backstay.checkpoint()} step {n[0]}")
                except backstay.Error as error:  # this version is lost, the job is not
                    say(f"no version at step {n[0]}: {error}")
        total = checksum(u)
        say(f"done step {n[0]} checksum {total:016X}")


main(*map(int, sys.argv[1:]))
