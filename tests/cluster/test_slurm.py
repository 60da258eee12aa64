"""A real Slurm over four hosts."""

import os

import pytest

from minicluster import checks, waiting
from minicluster.errors import MissingFeature

SHARED = "/mnt/shared"
SILENCE_S = 6


@pytest.fixture(scope="module")
def slurm(cluster):
    try:
        checks.require_tools(checks.SLURM_TOOLS)
    except MissingFeature as missing:
        pytest.skip(str(missing))
    cluster("slurm", "up", "--silence-s", SILENCE_S)
    cluster("slurm", "up", "--silence-s", SILENCE_S)  # twice is once
    yield cluster
    cluster("up", 4)
    cluster("slurm", "down")
    assert cluster.status()["slurm"] == "down"


def submit(mini, options, *lines):
    script = "\n".join(["#!/bin/bash", *lines])
    return mini.on("n0",
                   f"cat >{SHARED}/job <<'END'\n{script}\nEND\nsbatch --parsable -o /dev/null "
                   f"{options} {SHARED}/job").strip()


def job_state(mini, job):
    return mini.on("n0", f"squeue -h -t all -j {job} -o %T").strip()


def node_state(mini, node):
    return mini.on("n0", f"sinfo -h -n {node} -o %T").strip().rstrip("*")


def wait_for_file(mini, name):
    path = f"{SHARED}/{name}"
    waiting.until(lambda: mini.run("exec", "n0", "--", "test", "-s", path)[0] == 0, path)
    return mini.on("n0", f"cat {path}")


def test_srun_on_all_hosts(slurm):
    assert slurm.status()["slurm"] == "up"
    output = slurm("exec", "n0", "--", "srun", "-N4", "-n4", "hostname")
    assert sorted(output.split()) == ["n0", "n1", "n2", "n3"]


@pytest.mark.skipif("BACKSTAY_TEST_RING_MPICH" not in os.environ, reason="MPICH is missing")
def test_srun_of_an_mpich_program(slurm):
    output = slurm("exec", "n0", "--", "srun", "--mpi=pmi2", "-N4", "-n4",
                   os.environ["BACKSTAY_TEST_RING_MPICH"])
    assert "token 7" in output and all(f"on n{host}" in output for host in range(4))


@pytest.fixture(scope="module")
def limited(slurm):
    """A job that is warned before its time limit. Slurm looks at these twice a minute: others run
    meanwhile.
    """
    job = submit(slurm, "-w n1 -N1 -t 1 --signal=B:USR1@58",
                 f"trap 'echo warned >{SHARED}/warned; exit 0' USR1",
                 f"echo started >{SHARED}/started", "sleep 1000 & wait")
    wait_for_file(slurm, "started")
    return job


def test_killed_nodes_are_seen_a_job_survives_and_another_is_requeued(slurm, limited):
    survivor = submit(slurm, "-w n0,n3 -N2 --no-kill", f"echo started >{SHARED}/survivor",
                      f"until [ -e {SHARED}/go ]; do sleep 0.1; done",
                      f"srun -N1 -w n0 hostname >{SHARED}/survived")
    requeued = submit(slurm, "-w n2 -N1 --requeue",
                      f"echo ${{SLURM_RESTART_COUNT:-0}} >{SHARED}/restarts",
                      "[ \"${SLURM_RESTART_COUNT:-0}\" = 0 ] && sleep 1000; exit 0")
    wait_for_file(slurm, "survivor")
    assert wait_for_file(slurm, "restarts") == "0\n"
    slurm("kill", "n3")
    slurm("kill", "n2")
    for node in ("n2", "n3"):
        waiting.until(lambda: node_state(slurm, node) == "down", f"Slurm to see {node} down")
    assert job_state(slurm, survivor) == "RUNNING"
    assert job_state(slurm, requeued) == "PENDING"
    slurm.on("n0", f"touch {SHARED}/go")
    waiting.until(lambda: job_state(slurm, survivor) == "COMPLETED", "the surviving job")
    assert slurm.on("n0", f"cat {SHARED}/survived") == "n0\n"
    slurm("up", 4)
    slurm("slurm", "up", "--silence-s", SILENCE_S)
    waiting.until(lambda: slurm.on("n0", f"cat {SHARED}/restarts") == "1\n", "the second start")
    waiting.until(lambda: job_state(slurm, requeued) == "COMPLETED", "the requeued job")


def test_a_time_limit_with_a_warning(slurm, limited):
    wait_for_file(slurm, "warned")
    waiting.until(lambda: job_state(slurm, limited) == "COMPLETED", "the end of the job")
