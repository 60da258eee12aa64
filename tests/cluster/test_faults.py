"""What goes wrong on several hosts while a job runs or before it comes back: the data is exact, or it is said what was lost."""

import json
import re
import shutil
import time

import pytest

from conftest import finish
from test_nodes import COMMAND, JOB, SETTINGS, nodes, result, undisturbed  # noqa: F401 (fixtures)

pytestmark = pytest.mark.skipif(not JOB, reason="Open MPI is missing")

# Every chunk of a segment, whatever lies where.
DAMAGE = """python3 -c '
import sys
with open(sys.argv[1], "r+b") as file:
    size = file.seek(0, 2)
    for at in range(4096 + 1000, size, 100_000):
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))
' """


def test_a_cable_is_pulled_for_five_seconds_in_the_middle(nodes, undisturbed):
    """Longer than dead_after_s: the agents take each other for dead, find each other again, and protect what they could not."""
    run = nodes.start(["n0", "n1", "n2"], 40, gate_step=10, gate="/mnt/shared/go")
    nodes.mini.on("n0", "for try in $(seq 1000); do [ -e /mnt/shared/go.reached ] && exit; sleep 0.02; done; exit 1")
    nodes.mini("cut", "n2")
    nodes.mini.on("n0", "touch /mnt/shared/go")
    time.sleep(5)  # the length of the cut, not a wait for something
    nodes.mini("heal", "n2")
    code, output = finish(run)
    nodes.mini.on("n0", "rm /mnt/shared/go*")
    assert code == 0 and "waited level=3 code=0" in output, output + nodes.logs()
    assert result(output) == undisturbed[40]


@pytest.mark.parametrize("hosts", [["n0", "n2"], ["n2", "n3", "n0"]], ids="-".join)
def test_a_damaged_copy_is_passed_over_and_replaced(nodes, undisturbed, hosts):
    """Found by the host that has it, or by one that reads it from there."""
    nodes.run(["n0", "n1", "n2"], 20, protect_replicas=2)
    nodes.stop_agents("n0", "n2")
    nodes.lose("n1")
    path = f"/var/tmp/backstay-root/{nodes.job}/v0000000000000004/node-0000001.segment"
    whole, = {nodes.mini.on(host, f"md5sum {path}") for host in ("n0", "n2")}
    nodes.mini.on("n0", f"{DAMAGE} {path}")
    assert nodes.mini.on("n0", f"md5sum {path}") != whole
    again = nodes.run(hosts, 25)
    assert "restarted version=4 step=20" in again, again
    nodes.mini.on("n0", f"for try in $(seq 1000); do md5sum {path} | grep -q {whole.split()[0]} && exit; sleep 0.02; done; exit 1")
    assert result(nodes.run(hosts, 40)) == undisturbed[40]


def test_a_host_comes_back_with_an_old_disk(nodes, undisturbed):
    nodes.run(["n0", "n1", "n2"], 20)
    nodes.mini("kill", "n1")
    nodes.run(["n0", "n2"], 30)
    nodes.mini("boot", "n1")
    again = nodes.run(["n1", "n0", "n2"], 40)
    assert "restarted version=6 step=30" in again and result(again) == undisturbed[40], again


@pytest.mark.skipif(not shutil.which("faketime"), reason="faketime is missing")
def test_clocks_that_differ(nodes, undisturbed):
    """By an hour and by a day, and the one that was ahead is behind when its agent comes back."""
    def clocks(n1, n2):
        lines = ["#!/bin/sh", "export FAKETIME_DONT_FAKE_MONOTONIC=1", "case $(hostname) in",
                 f"n1) exec faketime -f {n1} {SETTINGS['AGENT_PROGRAM']} \"$@\";;",
                 f"n2) exec faketime -f {n2} {SETTINGS['AGENT_PROGRAM']} \"$@\";;",
                 f"*) exec {SETTINGS['AGENT_PROGRAM']} \"$@\";;", "esac"]
        nodes.mini.on("n3", "cat >/mnt/shared/agent <<'END'\n" + "\n".join(lines) + "\nEND\nchmod +x /mnt/shared/agent")
        return {"agent_program": "/mnt/shared/agent"}

    nodes.stop_agents("n0", "n1", "n2")
    first = nodes.run(["n0", "n1", "n2"], 20, **clocks("+1h", "-1d"))
    assert "waited level=3 code=0" in first and result(first) == undisturbed[20]
    days = {nodes.mini.on(host, "grep 'agent listens' /tmp/backstay-0/agent.log | tail -n 1 | head -c 10") for host in ("n0", "n2")}
    assert len(days) == 2, "the clocks did not differ"
    nodes.stop_agents("n0", "n1", "n2")
    nodes.lose("n0")
    again = nodes.run(["n1", "n3", "n2"], 40, **clocks("-1h", "+1d"))
    assert "restarted version=4 step=20" in again and "waited level=3 code=0" in again and result(again) == undisturbed[40]


def test_two_users_with_a_job_of_the_same_name_do_not_see_each_other(nodes):
    """One host, as the other user cannot log in on another."""
    settings = " ".join(f"BACKSTAY_{key}={value}" for key, value in (SETTINGS | {"JOB": nodes.job}).items())
    program = f"mpirun.openmpi --oversubscribe -n 2 {JOB} 20 5 wait_level=2"
    other = "setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/tmp"
    if nodes.mini.run("exec", "n0", "--", "bash", "-c", f"{other} test -x {JOB}")[0] != 0:
        pytest.skip("another user cannot run the test program here")
    runs = [nodes.mini.start("exec", "n0", "--", "bash", "-c", f"cd /tmp; {who} env {settings} {program}")
            for who in ("env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", other)]
    ended = [finish(run) for run in runs]
    for code, output in ended:
        assert code == 0 and "waited level=2 code=0" in output and "restarted" not in output, output
    assert result(ended[0][1]) == result(ended[1][1])
    listed = nodes.mini.on("n0", f"{other} {COMMAND} ls {nodes.job} --json")
    assert json.loads(listed)["dir"].endswith("backstay-nobody"), listed
    for folder in ("/var/tmp/backstay-root", "/tmp/backstay-0"):
        code, output = nodes.mini.run("exec", "n0", "--", "bash", "-c", f"{other} ls {folder}")
        assert code != 0 and re.search("Permission denied", output), output
