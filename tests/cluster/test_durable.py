"""Level durable over several hosts: turns at a shared directory, and back from there alone."""

import json
import os
import re

import pytest

from conftest import finish
from minicluster import disks
from test_nodes import JOB, nodes, result, undisturbed  # noqa: F401 (fixtures)

pytestmark = pytest.mark.skipif(not JOB, reason="Open MPI is missing")
DURABLE, BUSY = 4, 7
TOOL = os.environ.get("BACKSTAY_TEST_COMMAND", "")


@pytest.fixture
def shared(nodes):  # noqa: F811
    path = f"/mnt/shared/{nodes.job}"
    nodes.mini.on("n0", f"mkdir -m 700 {path}")
    return path


@pytest.fixture
def slow(nodes, shared):  # noqa: F811
    """So that a turn takes its time, where this machine can do it."""
    can_be_slow = disks.can_be_slow()
    if can_be_slow:
        nodes.mini("slow-shared", "20M")
    yield shared
    if can_be_slow:
        nodes.mini("slow-shared", "off")


def test_durable_in_turns_and_back_from_there_alone(nodes, undisturbed, slow):
    """Everything but the shared directory is lost; other hosts, more or fewer, bring it back."""
    durable = {"durable_dir": slow, "drain_nodes_max": 1, "protect_replicas": 0}
    first = nodes.run(["n0", "n1", "n2"], 20, wait=DURABLE, **durable)
    assert "waited level=4 code=0" in first and result(first) == undisturbed[20]
    verified = nodes.mini.on("n3", f"{TOOL} verify {nodes.job} 4 --dir {slow} --json")
    assert '"good": true' in verified
    shown = json.loads(nodes.mini.on("n3", f"{TOOL} show {nodes.job} 4 --dir {slow} --json"))
    assert shown["nodes_here"] == [0, 1, 2] and shown["level"] == "durable"
    for host in ("n0", "n1", "n2"):
        nodes.lose(host)
    for host in ("n0", "n1", "n2"):
        nodes.mini("restore-disk", host)
        nodes.mini("boot", host)
    again = nodes.run(["n0", "n1", "n2"], 40, wait=DURABLE, **durable)
    assert "restarted version=4 step=20" in again and result(again) == undisturbed[40]


def test_streams_come_back_from_shared_storage_alone(nodes, shared):
    durable = {"durable_dir": shared, "protect_replicas": 0, "streams": 40}
    nodes.run(["n0", "n1"], 20, wait=DURABLE, **durable)
    for host in ("n0", "n1"):
        nodes.lose(host)
    again = nodes.run(["n2", "n3"], 40, wait=DURABLE, **durable)
    assert "restarted version=4 step=20" in again and "streams as they were written" in again


@pytest.mark.parametrize("hosts", [["n3", "n0"], ["n3", "n2", "n1", "n0"]], ids="-".join)
def test_durable_comes_back_on_other_hosts(nodes, undisturbed, shared, hosts):
    durable = {"durable_dir": shared}
    nodes.run(["n0", "n1", "n2"], 20, wait=DURABLE, **durable)
    nodes.stop_agents("n0", "n1", "n2")
    for host in ("n0", "n1", "n2"):
        nodes.mini.on(host, "rm -rf /var/tmp/backstay-*")
    again = nodes.run(hosts, 40, wait=DURABLE, **durable)
    assert "restarted version=4 step=20" in again and result(again) == undisturbed[40]


@pytest.mark.parametrize("host, failpoint", [("n1", "copy.2"), ("n0", "copy.4")])
def test_an_agent_is_killed_while_a_version_is_copied(nodes, undisturbed, slow, host, failpoint):
    """In its turn, or as the coordinator: another one copies its part, the job goes on, and the
    announced version comes back.
    """
    nodes.stop_agents("n0", "n1", "n2")
    agent = nodes.agent_killed_at(host, failpoint)
    gate = f"/mnt/shared/{nodes.job}-gate"
    run = nodes.start(["n0", "n1", "n2"], 10, wait=DURABLE, agent_program=agent, gate_step=5,
                      gate=gate, durable_dir=slow)
    nodes.wait_until(host,
                     f"[ -e {nodes.first_agent()} ] && [ -e {gate}.reached ] && ! pgrep -x "
                     f"backstayd")
    nodes.mini.on("n0", f"touch {gate}")
    code, output = finish(run)
    assert code == 0 and "waited level=4 code=0" in output, output + nodes.logs()
    nodes.stop_agents("n0", "n1", "n2")
    for host in ("n0", "n1", "n2"):
        nodes.mini.on(host, "rm -rf /var/tmp/backstay-*")
    again = nodes.run(["n3", "n0"], 20, durable_dir=slow)
    assert "restarted version=2 step=10" in again and result(again) == undisturbed[20], again + nodes.logs()


def test_programs_of_one_name_on_other_hosts_are_kept_apart(nodes, undisturbed, shared):
    """The second one restarts from what the first has there, hears that none of its own versions
    goes there, and why.
    """
    gate = f"/mnt/shared/{nodes.job}-gate"
    first = nodes.start(["n0", "n1"], 20, ranks=4, wait=DURABLE, gate_step=10, gate=gate,
                        durable_dir=shared)
    nodes.wait_until("n0",
                     f"[ -e {shared}/{nodes.job}/v0000000000000002/commit.durable ] && [ -e "
                     f"{gate}.reached ]")
    second = nodes.run(["n2", "n3"], 30, ranks=4, wait=DURABLE, durable_dir=shared)
    assert "restarted version=2 step=10" in second and f"waited level=4 code={BUSY}" in second, second
    assert f"another program of job {nodes.job} lives on n0" in second, second
    nodes.mini.on("n0", f"touch {gate}")
    code, output = finish(first)
    assert code == 0 and "waited level=4 code=0" in output, output + nodes.logs()
    listed = json.loads(nodes.mini.on("n0", f"{TOOL} ls {nodes.job} --dir {shared} --json"))[
        "versions"]
    assert max(one["version"] for one in listed) == 4, listed


def test_a_damaged_part_of_a_durable_version_is_skipped_by_all(nodes, undisturbed, shared):
    durable = {"durable_dir": shared, "protect_replicas": 0}
    first = nodes.run(["n0", "n1", "n2"], 20, wait=DURABLE, **durable)
    assert "waited level=4 code=0" in first, first + nodes.logs()
    nodes.stop_agents("n0", "n1", "n2")
    for host in ("n0", "n1", "n2"):
        nodes.mini.on(host, "rm -rf /var/tmp/backstay-*")
    part = f"{shared}/{nodes.job}/v0000000000000004/node-0000001.segment"
    nodes.mini.on("n0", f"printf x | dd of={part} bs=1 seek=5000 conv=notrunc status=none")
    again = nodes.run(["n0", "n1", "n2"], 40, wait=DURABLE, **durable)
    older = int(re.search(r"restarted version=(\d+)", again)[1])
    assert older < 4 and result(again) == undisturbed[40]
    assert "version 4" in again, "the reason is said"


@pytest.mark.parametrize("damage", ["truncate -s 20 {}", "rm {0}; mkdir {0}"],
                         ids=["truncated", "a folder"])
def test_a_damaged_record_of_a_durable_version_is_told(nodes, undisturbed, shared, damage):
    durable = {"durable_dir": shared, "protect_replicas": 0}
    nodes.run(["n0", "n1"], 20, wait=DURABLE, **durable)
    nodes.stop_agents("n0", "n1")
    for host in ("n0", "n1"):
        nodes.mini.on(host, "rm -rf /var/tmp/backstay-*")
    nodes.mini.on("n0", damage.format(f"{shared}/{nodes.job}/v0000000000000004/commit.durable"))
    again = nodes.run(["n0", "n1"], 40, wait=DURABLE, **durable)
    older = int(re.search(r"restarted version=(\d+)", again)[1])
    assert older < 4 and result(again) == undisturbed[40]
    assert len(re.findall(r"version 4 skipped: .*commit", again)) == 1, again
