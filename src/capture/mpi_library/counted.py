"""Which functions of MPI are counted, and which make that a program cannot be saved.

generate.py asks. docs/protocol/cut.md says why.
"""

import re

# Sends, receives, probes and waits, what frees a communicator, and what makes one by a call of some
# ranks alone: written by hand.
BY_HAND = {
    f"MPI_{name}"
    for name in (
        "Send Bsend Rsend Ssend Isend Ibsend Irsend Issend "
        "Recv_init Send_init Bsend_init Rsend_init Ssend_init Start Startall "
        "Recv Irecv Sendrecv Sendrecv_replace Probe Iprobe Mprobe Improbe Mrecv Imrecv "
        "Wait Waitall Waitany Waitsome Test Testall Testany Testsome "
        "Request_free Request_get_status Cancel Comm_free Comm_disconnect "
        "Comm_create_group Intercomm_create"
    ).split()
}
OPERATIONS = (
    "Allgather Allgatherv Allreduce Alltoall Alltoallv Alltoallw Barrier Bcast Exscan Gather "
    "Gatherv Neighbor_allgather Neighbor_allgatherv Neighbor_alltoall Neighbor_alltoallv "
    "Neighbor_alltoallw Reduce Reduce_scatter Reduce_scatter_block Scan Scatter Scatterv"
).split()
BLOCKING = {f"MPI_{name}" for name in OPERATIONS}
BEGINNING = {f"MPI_I{name.lower()}" for name in OPERATIONS}
MAKING = {
    f"MPI_{name}"
    for name in (
        "Cart_create Cart_sub Comm_create Comm_dup Comm_dup_with_info Comm_split Comm_split_type "
        "Dist_graph_create Dist_graph_create_adjacent Graph_create Intercomm_merge"
    ).split()
}
# By the beginning of the name, behind MPI_; the end of a sentence "cannot be saved, because".
REFUSED = (
    (r"(Comm_create_from_group|Intercomm_create_from_groups)$",
     "it has made a communicator without MPI_COMM_WORLD"),
    (r"Comm_(accept|connect|join|spawn)", "it has connected to processes beside its own"),
    (r"(Psend|Precv)_init$", "it has used partitioned communication"),
    (rf"({'|'.join(OPERATIONS)})_init$", "it has made a persistent collective operation"),
    (r"Session_init$", "it has used a session of MPI"),
    (r"Isendrecv", "it has called MPI_Isendrecv"),
)


# What cannot be saved while it is open: refusals.h. MPI_Win_free is written by hand.
OPENING = (
    (r"File_open$", "file"),
    (r"Win_(allocate|create$|create_dynamic)", "window"),
)
CLOSING = ((r"File_close$", "file"),)


def first_match(rows, name):
    for pattern, what in rows:
        if re.match(pattern, name.removeprefix("MPI_")):
            return what
    return None


def refusal(name):
    """Return why a program that has called it cannot be saved, or None."""
    return first_match(REFUSED, name)


def is_collective(name):
    return name in BLOCKING or name in BEGINNING or name in MAKING


def before(name, parameters):
    """Yield what stands before the real call, and whether the call is counted by it."""
    why = refusal(name)
    if why:
        yield f'  refuse("{why}");'
    if opened := first_match(OPENING, name):
        yield f"  hold_back(Open::{opened});"
    if is_collective(name):
        yield f"  const Collective begun({communicator(parameters)});"


def after(name, parameters):
    """Yield what stands behind it; `result` is what it returned."""
    if name in BEGINNING:
        yield "  if (result == 0) note_request(made_request(request), Request::Kind::collective);"
    if opened := first_match(OPENING, name):
        yield f"  if (result != 0) let_go(Open::{opened});"
    if closed := first_match(CLOSING, name):
        yield f"  if (result == 0) let_go(Open::{closed});"


def communicator(parameters):
    return next(one.name for one in parameters if one.handle == "comm" and not one.is_pointer)
