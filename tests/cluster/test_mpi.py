"""Both launchers with a real MPI program over all hosts; a host that dies under it."""

import os
import re

import pytest

from conftest import finish, wait_for_line

PROGRAMS = {mpi: os.environ.get(f"BACKSTAY_TEST_RING_{mpi.upper()}", "") for mpi
            in ("mpich", "openmpi")}
both = pytest.mark.parametrize("mpi", [mpi for mpi, program in PROGRAMS.items() if program])


def places(output):
    return {int(rank): host for rank, host in re.findall(r"rank (\d+) of \d+ on (n\d)", output)}


@both
def test_ranks_go_to_all_hosts_in_turn(cluster, mpi):
    output = cluster("mpirun", "--mpi", mpi, "-n", 8, "--", PROGRAMS[mpi])
    assert places(output) == {rank: f"n{rank % 4}" for rank in range(8)}
    assert "token 29" in output


@both
def test_chosen_hosts(cluster, mpi):
    output = cluster("mpirun", "--mpi", mpi, "-n", 2, "--hosts", "n3,n1", "--", PROGRAMS[mpi])
    assert places(output) == {0: "n3", 1: "n1"}


@both
def test_a_host_that_dies_ends_mpirun_which_names_it(whole, mpi):
    run = whole.start("mpirun", "--mpi", mpi, "-n", 4, "--", PROGRAMS[mpi], "forever")
    wait_for_line(run, "running")
    whole("kill", "--reset", "n2")
    code, output = finish(run)
    assert code != 0 and "mini: n2 is down" in output
    for host in ("n0", "n1", "n3"):
        assert "forever" not in whole.on(host, "ps -e -o args"), "the other ranks have ended"


def test_an_unknown_host_and_no_program(cluster):
    code, output = cluster.run("mpirun", "--mpi", "mpich", "-n", 2, "--hosts", "n0,n9", "--",
                               "true")
    assert code == 1 and "there is no host 'n9'" in output
    code, output = cluster.run("mpirun", "--mpi", "mpich", "-n", 2)
    assert code == 1 and "which program" in output
