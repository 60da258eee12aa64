"""What goes wrong on several hosts while a job runs or before it comes back: the data is exact, or
it is said what was lost.
"""

import json
import os
import re
import shlex
import shutil
import time

import pytest

from conftest import finish
from minicluster import cluster as clusters_here, disks, hosts, mpi
from test_nodes import COMMAND, JOB, LOCAL, SETTINGS, nodes, result, undisturbed  # noqa: F401 (fixtures)

BLOCKS = os.environ.get("BACKSTAY_TEST_BLOCKS_OPENMPI", "")
OTHER_PROTOCOL = os.environ.get("BACKSTAY_TEST_OTHER_PROTOCOL", "")
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
    """Longer than dead_after_s: the agents take each other for dead, find each other again, and
    protect what they could not.
    """
    run = nodes.start(["n0", "n1", "n2"], 40, gate_step=10, gate="/mnt/shared/go")
    nodes.wait_until("n0", "[ -e /mnt/shared/go.reached ]")
    nodes.mini("cut", "n2")
    nodes.mini.on("n0", "touch /mnt/shared/go")
    time.sleep(5)  # the length of the cut, not a wait for something
    nodes.mini("heal", "n2")
    code, output = finish(run)
    nodes.mini.on("n0", "rm /mnt/shared/go*")
    assert code == 0 and "waited level=3 code=0" in output, output + nodes.logs()
    assert result(output) == undisturbed[40]


@pytest.mark.parametrize("left", [["n0", "n2"], ["n2", "n3", "n0"]], ids="-".join)
def test_a_damaged_copy_is_passed_over_and_replaced(nodes, undisturbed, left):
    """Found by the host that has it, or by one that reads it from there."""
    nodes.run(["n0", "n1", "n2"], 20, protect_replicas=2)
    nodes.stop_agents("n0", "n2")
    nodes.lose("n1")
    path = f"/var/tmp/backstay-root/{nodes.job}/v0000000000000004/node-0000001.segment"
    whole, = {nodes.mini.on(host, f"md5sum {path}") for host in ("n0", "n2")}
    nodes.mini.on("n0", f"{DAMAGE} {path}")
    assert nodes.mini.on("n0", f"md5sum {path}") != whole
    again = nodes.run(left, 25)
    assert "restarted version=4 step=20" in again, again
    nodes.wait_until("n0", f"md5sum {path} | grep -q {whole.split()[0]}")
    assert result(nodes.run(left, 40)) == undisturbed[40]


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
        nodes.mini.on("n3",
                      "cat >/mnt/shared/agent <<'END'\n" + "\n".join(lines)
                      + "\nEND\nchmod +x /mnt/shared/agent")
        return {"agent_program": "/mnt/shared/agent"}

    nodes.stop_agents("n0", "n1", "n2")
    first = nodes.run(["n0", "n1", "n2"], 20, **clocks("+1h", "-1d"))
    assert "waited level=3 code=0" in first and result(first) == undisturbed[20]
    days = {nodes.mini.on(host,
                          "grep 'agent listens' /tmp/backstay-0/agent.log | tail -n 1 | head -c 10") for host in ("n0", "n2")}
    assert len(days) == 2, "the clocks did not differ"
    nodes.stop_agents("n0", "n1", "n2")
    nodes.lose("n0")
    again = nodes.run(["n1", "n3", "n2"], 40, **clocks("-1h", "+1d"))
    assert "restarted version=4 step=20" in again and "waited level=3 code=0" in again and result(again) == undisturbed[40]


# --- disks

@pytest.mark.skipif(not disks.can_be_slow(),
                    reason="slow disks need the blkio controller of version 1")
def test_a_slow_disk_of_one_host(nodes, undisturbed):
    """Versions wait for it, and none is announced before it is there; there is no warning, and no
    host is taken for dead.
    """
    rate = 8e6
    nodes.stop_agents("n0", "n1", "n2")
    nodes.mini("slow-disk", "n1", "8M")
    output = nodes.run(["n0", "n1", "n2"], 10)
    nodes.kill_agents("n0", "n1",
                      "n2")  # at once: what is on its way to the slow disk does not arrive
    assert "waited level=3 code=0" in output and "backstay:" not in output, output + nodes.logs()
    for host in ("n0", "n1", "n2"):
        when = {(one["event"], one.get("version")): one for one in nodes.events(host)}
        assert {("protected", 1), ("protected", 2)} <= when.keys() and ("overtaken",
            1) not in when, when
        stored = 2 * 2 * when["captured",
                              1]["bytes"]  # by n1: two versions, its own part and a copy of another's
        took_s = 1e-9 * (when["protected", 2]["t_ns"] - when["captured", 1]["t_ns"])
        assert took_s > 0.8 * stored / rate, (took_s, when)
        assert not nodes.mini.on(host,
                                 f"grep 'nodes_lost job={nodes.job} ' /tmp/backstay-0/agent.log || "
                                 f"true")
    nodes.mini("slow-disk", "n1", "off")
    kept = nodes.mini.on("n2", f"ls /var/tmp/backstay-root/{nodes.job}/v0000000000000002")
    lost, left = ("n2", "n0") if "node-0000000" in kept else ("n0", "n2")  # whose copy is on n1
    nodes.lose(lost)
    again = nodes.run(["n1", left], 20)
    assert "restarted version=2 step=10" in again and result(again) == undisturbed[20], again


@pytest.mark.skipif(not disks.can_be_slow(),
                    reason="slow disks need the blkio controller of version 1")
def test_agents_that_are_stopped_wait_for_each_others_slow_disks(nodes, undisturbed):
    """As at a job's end under Slurm: all are asked at once, and need longer for their parts than
    anybody is waited for in a hurry.
    """
    hosts = ["n0", "n1", "n2"]
    nodes.stop_agents(*hosts)
    for host, rate in zip(hosts, ("1M", "1M", "2M")):
        nodes.mini("slow-disk", host, rate)
    output = nodes.run(hosts, 10, wait=0, protect_replicas=0)
    assert "checkpoint step=10 code=0" in output, output
    for host in hosts:
        nodes.mini.on(host, "pkill -TERM -f '[/]backstayd '")
    for host in hosts:
        nodes.wait_until(host, "! pgrep -f '[/]backstayd ' >/dev/null")
    for host in hosts:
        nodes.mini("slow-disk", host, "off")
    again = nodes.run(hosts, 20)
    assert "restarted version=2 step=10" in again and result(again) == undisturbed[20], again + nodes.logs()


def test_a_disk_fails_in_the_middle_of_a_run(nodes, undisturbed):
    """All hear which host and why, the program goes on, and what was protected before comes back
    without that host.
    """
    gate = f"/mnt/shared/{nodes.job}"
    run = nodes.start(["n0", "n1", "n2"], 20, wait=LOCAL, gate_step=12, gate=gate, safe_step=10)
    nodes.wait_until("n0", f"[ -e {gate}.reached ]")
    nodes.mini("lose-disk", "n1")
    nodes.mini.on("n0", f"touch {gate}")
    code, output = finish(run)
    assert code == 0 and result(output) == undisturbed[20] and output.count(" code=0 version=") == 4, output + nodes.logs()
    assert re.search(r"^backstay: node 1 \(n1\): version [34] could not be written: .*: "
                     r"Input/output error", output, re.MULTILINE), output
    assert re.search(r"waited level=2 code=30 node 1 \(n1\) keeps version 4 from level local: .*: "
                     r"Input/output error", output), output
    if COMMAND:
        show_does_not_rely_on_the_disk(nodes)
    nodes.kill_agents("n0", "n2")
    nodes.mini("kill", "n1")
    again = nodes.run(["n0", "n2"], 40)
    assert "restarted version=2 step=10" in again and result(again) == undisturbed[40], again


def show_does_not_rely_on_the_disk(nodes):
    survival = json.loads(nodes.mini.on("n0",
                                        f"{COMMAND} show {nodes.job} 2 --json --dir "
                                        f"/var/tmp/backstay-root"))["survival"]
    trouble, = survival["troubles"]
    assert trouble.startswith("node 1: version 4 not local: ") and trouble.endswith("Input/output "
                                                                                    "error"), survival
    assert [loss["fatal"] for loss in survival["losses"]] == [0, 3, 1], survival
    assert [loss["fatal"] for loss in survival["without_troubled"]["losses"]] == [2, 1, 0], survival


# --- hosts and agents

@pytest.mark.skipif(not BLOCKS, reason="the program is missing")
def test_another_number_of_ranks_after_a_host_was_lost(nodes):
    """The program compares each element of the global array."""
    code, saved = finish(nodes.start_program(["n0", "n1", "n2"], 6,
                                             [BLOCKS, "save", "120x70", "3x2", "protected"]))
    assert code == 0 and "saved version=1" in saved, saved
    nodes.stop_agents("n0", "n2")
    nodes.lose("n1")
    code, again = finish(nodes.start_program(["n0", "n2"], 4, [BLOCKS, "load", "120x70", "2x2"]))
    assert code == 0 and "good version=1" in again, again + nodes.logs()


@pytest.mark.skipif(not OTHER_PROTOCOL, reason="the library is missing")
def test_an_agent_of_another_release_among_the_hosts(nodes):
    """The program goes on to its end; who waits hears at once why no level comes, and what to do.
    """
    nodes.stop_agents("n0", "n1")
    agent = nodes.agent_after("n1", f"export LD_PRELOAD={OTHER_PROTOCOL}")
    code, output = finish(nodes.start(["n0", "n1"], 10, wait=LOCAL, agent_program=agent,
                                      network_dead_after_s=1))
    assert code == 0 and output.count(" code=0 version=") == 2, output + nodes.logs()
    assert re.search(r"waited level=2 code=11 version 2 stays captured: no connection with node 1: "
                     r".*speaks version 2 of the network "
                     "protocol and we speak 1: install one release of Backstay on all nodes",
                     output), output + nodes.logs()


@pytest.mark.parametrize("failpoint", ["depot.open", "restart.verified"])
def test_an_agent_is_killed_while_a_restart_is_served(nodes, undisturbed, failpoint):
    """It opens what another host wants to read, or has what its own ranks want. All begin again
    with the agent that follows.
    """
    nodes.run(["n0", "n1", "n2"], 20, protect_replicas=2)
    nodes.kill_agents("n0", "n1")
    nodes.lose("n2")
    again = nodes.run(["n0", "n1", "n3"], 40, agent_program=nodes.agent_killed_at("n1", failpoint))
    assert nodes.mini.on("n1",
                         "cat /tmp/backstay-0/agent.log").count(f"run begins job={nodes.job} ") == 3, "it was not killed"
    assert "restarted version=4 step=20" in again and result(again) == undisturbed[40], again + nodes.logs()


# --- users

AS_ROOT = "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
AS_NOBODY = "setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/tmp"


@pytest.fixture
def two_users(nodes):
    """The hosts run commands of another user, too."""
    if nodes.mini.run("exec", "n0", "--", "bash", "-c", f"{AS_NOBODY} test -x {JOB}")[0] != 0:
        pytest.skip("another user cannot run the test program here")
    paths, record = clusters_here.find(nodes.mini.name)
    for host in hosts.names(record["hosts"]):
        paths.server(host).chmod(0o777)
    yield
    for host in hosts.names(record["hosts"]):
        paths.server(host).chmod(0o700)


def test_two_users_with_a_job_of_the_same_name_do_not_see_each_other(nodes, two_users, undisturbed):
    on = ["n0", "n1", "n2"]
    settings = [f"BACKSTAY_{key}={value}" for key, value in (SETTINGS | {"JOB": nodes.job}).items()]

    def start(who, *program):
        words = shlex.join(mpi.openmpi(6, on, ["env", *settings, JOB, *program, "wait_level=3"]))
        return nodes.mini.start("exec", "n0", "--", "bash", "-c", f"cd /tmp; exec {who} {words}")

    def told(who, host, words):
        return json.loads(nodes.mini.on(host, f"{who} {COMMAND} {words} --json"))

    nodes.stop_agents(*on)
    gates = {who: f"/mnt/shared/{nodes.job}-{number}" for number,
             who in enumerate((AS_ROOT, AS_NOBODY))}
    runs = [start(who, "20", every, "gate_step=20", f"gate={gate}") for (who, gate),
            every in zip(gates.items(), ("5", "10"))]
    agents = []
    for who, gate in gates.items():
        nodes.wait_until("n0", f"[ -e {gate}.reached ]")
    for (who, gate), newest in zip(gates.items(), (4, 2)):
        job, = told(who, "n1", "status")["jobs"]
        assert (job["job"], job["nodes"], job["connected"]) == (nodes.job, 3, 2), job
        assert [(one["state"], one["host"], one["newest"]) for one in job["members"]] == [("ok",
            host, newest) for host in on], job
        agents += [(one["host"], one["pid"]) for one in job["members"]]
    assert len(set(agents)) == 6, agents
    for gate in gates.values():
        nodes.mini.on("n0", f"touch {gate}")
    for run in runs:
        code, output = finish(run)
        assert code == 0 and "waited level=3 code=0" in output and "restarted" not in output, output + nodes.logs()
        assert result(output) == undisturbed[20]
    runs = [start(who, "40", "20") for who in gates]
    for run, newest in zip(runs, (4, 2)):
        code, output = finish(run)
        assert code == 0 and f"restarted version={newest} step=20" in output and result(output) == undisturbed[40], output
    for host in on:
        assert told(AS_NOBODY, host, f"ls {nodes.job}")["dir"].endswith("backstay-nobody")
        for folder in ("/var/tmp/backstay-root", "/tmp/backstay-0"):
            code, output = nodes.mini.run("exec", host, "--", "bash", "-c",
                                          f"{AS_NOBODY} ls {folder}")
            assert code != 0 and re.search("Permission denied", output), output
