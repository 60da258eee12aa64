"""The place of a process among the others, asked of mpi4py alone: no MPI header is needed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Position:
    """The numbers of backstay_group, in its order."""

    rank: int
    ranks: int
    local_rank: int
    local_ranks: int
    node: int
    nodes: int

    def __iter__(self):
        return iter((self.rank, self.ranks, self.local_rank, self.local_ranks, self.node,
                     self.nodes))


class MpiGroup:
    """Collective: a private duplicate of an mpi4py communicator, with what backstay_group asks for.
    """

    def __init__(self, comm):
        from mpi4py import MPI  # here, so that a program without MPI does not need it

        if not isinstance(comm, MPI.Comm):
            raise TypeError(f"comm: a communicator of mpi4py is needed, not {type(comm).__name__}")
        self._mpi = MPI
        self._comm = comm.Dup()
        node = self._comm.Split_type(MPI.COMM_TYPE_SHARED)
        leader = node.bcast(self._comm.rank)
        leaders = sorted(set(self._comm.allgather(leader)))
        self.position = Position(self._comm.rank, self._comm.size, node.rank, node.size,
                                 leaders.index(leader), len(leaders))
        node.Free()

    def broadcast(self, data: memoryview, root: int) -> None:
        self._comm.Bcast([data, self._mpi.BYTE], root)

    def minimum(self, value: int) -> int:
        return self._comm.allreduce(value, op=self._mpi.MIN)

    def free(self) -> None:
        """Collective; after the session has ended."""
        self._comm.Free()
