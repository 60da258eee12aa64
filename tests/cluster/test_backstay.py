"""Backstay on hosts: each has an agent of its own on its own disk, and the same job on two hosts is
two jobs.
"""

import os
import re

import pytest

from conftest import finish

JOB = os.environ.get("BACKSTAY_TEST_JOB_MPICH", "")
pytestmark = pytest.mark.skipif(not JOB, reason="MPICH is missing")
HOSTS = ("n1", "n2")


@pytest.fixture
def jobs(whole):
    """Nothing but the defaults: /var/tmp and /tmp are the host's own."""
    for name in [name for name in whole.environment if name.startswith("BACKSTAY_")
                 and "MINI" not in name]:
        del whole.environment[name]
    whole.environment |= {"BACKSTAY_JOB": "same",
                          "BACKSTAY_AGENT_PROGRAM": os.environ["BACKSTAY_TEST_AGENT"],
                          "BACKSTAY_AGENT_IDLE_EXIT_S": "60", "BACKSTAY_POOL_SIZE_MIB": "32",
                          "BACKSTAY_POOL_BUFFER_MIB": "1", "BACKSTAY_CHECKPOINT_POLICY": "request"}
    return whole


def start(mini, host, steps):
    return mini.start("mpirun", "--mpi", "mpich", "-n", 2, "--hosts", host, "--", JOB, steps, 5)


def output_of(run):
    code, output = finish(run)
    assert code == 0, output
    return output


def result(output):
    return re.search(r"^result .*$", output, re.MULTILINE).group()


def agents(mini, host):
    return int(mini.on(host, "pgrep -c -f '[/]backstayd ' || true"))


def test_the_same_job_on_two_hosts_at_once(jobs):
    runs = [start(jobs, host, 20) for host in HOSTS]
    first, second = [output_of(run) for run in runs]
    assert "checkpoint step=20 code=0" in first and "checkpoint step=20 code=0" in second
    assert result(first) == result(second)
    for host in HOSTS:
        assert agents(jobs, host) == 1
        jobs.on(host, "test -d /var/tmp/backstay-root/same && test -S /tmp/backstay-0/agent.sock")
    assert agents(jobs, "n0") == 0

    # One host crashes: the other goes on; after the boot its job restarts from its own disk.
    jobs.on("n1",
            "pkill -TERM -f '[/]backstayd '; while pgrep -f '[/]backstayd ' >/dev/null; do sleep "
            "0.05; done")
    jobs("kill", "n1")
    on_two = output_of(start(jobs, "n2", 40))
    assert "restarted version=4 step=20" in on_two
    jobs("boot", "n1")
    on_one = output_of(start(jobs, "n1", 40))
    assert "restarted version=4 step=20" in on_one
    assert result(on_one) == result(on_two)

    # One host loses its disk with all versions: the job says so and starts afresh; the other still
    # has them.
    jobs("kill", "n1")
    jobs("lose-disk", "n1")
    jobs("restore-disk", "n1")
    jobs("boot", "n1")
    assert "restarted" not in output_of(start(jobs, "n1", 10))
    assert "restarted version=8 step=40" in output_of(start(jobs, "n2", 45))
