"""A program of mpi4py as users have it: each step prints a checksum that is the same in each run.

Usage: steps.py STEPS PAUSE_MS
"""

import sys
import time
import zlib
from array import array

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
left, right = (rank - 1) % size, (rank + 1) % size
ROWS, COLUMNS = 32, 16


def mix(given, kept, _):
    """An operation of the program, over what lies in memory."""
    given, kept = memoryview(given).cast("q"), memoryview(kept).cast("q")
    for i, word in enumerate(given):
        kept[i] = (31 * word + kept[i]) & 0xFFFFFFFF


operation = MPI.Op.Create(mix, commute=True)
half = comm.Split(rank % 2, -rank)
field = array("d", [rank] * (ROWS * COLUMNS))
halo = array("d", [0] * COLUMNS)
persistent = [
    comm.Send_init([field, COLUMNS, MPI.DOUBLE], dest=left, tag=1),
    comm.Recv_init([halo, COLUMNS, MPI.DOUBLE], source=right, tag=1),
]
column = MPI.DOUBLE.Create_vector(ROWS, 1, COLUMNS).Commit()
total = 0
for step in range(int(sys.argv[1])):
    for i, value in enumerate(field):
        field[i] = value * 0.75 + step + rank + i % 5
    MPI.Prequest.Startall(persistent)
    MPI.Request.Waitall(persistent)
    status = MPI.Status()
    sent = comm.isend({"step": step, "rank": rank, "list": list(range(50))}, dest=right, tag=step)
    message = comm.mprobe(source=MPI.ANY_SOURCE, tag=step, status=status)
    got = message.recv()
    sent.wait()
    assert got["rank"] == left == status.Get_source() and got["step"] == step
    other = array("d", [0] * (ROWS * COLUMNS))
    comm.Sendrecv([field, 1, column], dest=right, sendtag=7,
                  recvbuf=[other, 1, column], source=left, recvtag=7)
    words = array("q", [step * 7 + rank, 3, int(halo[3])])
    comm.Allreduce(MPI.IN_PLACE, [words, 3, MPI.INT64_T], op=operation)
    text = comm.allreduce(str(rank), op=lambda one, next_one: one + next_one)
    every = comm.allgather((rank, half.Get_rank()))
    twin = half.Dup()
    added = twin.allreduce(step)
    twin.Free()
    done = repr((list(words), text, every, added, sum(other), sum(field)))
    total = zlib.crc32(done.encode(), total)
    totals = comm.gather(total)
    if rank == 0:
        print("step", step, totals, flush=True)
    time.sleep(float(sys.argv[2]) / 1000)
for request in persistent:
    request.Free()
column.Free()
operation.Free()
