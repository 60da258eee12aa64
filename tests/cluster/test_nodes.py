"""One job on several hosts: its agents find each other, keep each other's data, and bring it back
on whatever hosts are left.

The job prints a result that depends on every step of every rank; each test compares it with that of
an undisturbed run.
"""

import itertools
import json
import os
import re
import subprocess

import pytest

from conftest import finish, in_soak, wait_for_line
from minicluster import waiting

JOB = os.environ.get("BACKSTAY_TEST_JOB_OPENMPI", "")
pytestmark = pytest.mark.skipif(not JOB, reason="Open MPI is missing")

COMMAND = os.environ.get("BACKSTAY_TEST_COMMAND", "")
LOCAL, PROTECTED, UNSUPPORTED = 2, 3, 8
SETTINGS = {"AGENT_PROGRAM": os.environ.get("BACKSTAY_TEST_AGENT", ""), "AGENT_IDLE_EXIT_S": "60",
            "POOL_SIZE_MIB": "32",
            "POOL_BUFFER_MIB": "1", "CHECKPOINT_POLICY": "request", "NETWORK_HEARTBEAT_S": "0.1",
            "NETWORK_DEAD_AFTER_S": "3"}
STRERROR = {6: "the configuration is wrong", 12: "the network port is in use"}
names = (f"job{number}" for number in itertools.count())


class Nodes:
    """Runs of one job; its ranks go to the hosts in turn."""

    def __init__(self, mini):
        self.mini = mini
        self.job = next(names)

    def start(self, hosts, steps, ranks=6, wait=PROTECTED, gate_step=None, gate=None,
              safe_step=None, streams=None, **settings):
        more = [f"gate_step={gate_step}", f"gate={gate}"] if gate else []
        more += [f"safe_step={safe_step}"] if safe_step else []
        more += [f"streams={streams}"] if streams else []
        return self.start_program(hosts, ranks, [JOB, steps, 5, f"wait_level={wait}", *more],
                                  **settings)

    def start_program(self, hosts, ranks, program, **settings):
        words = [f"BACKSTAY_{key.upper()}={value}" for key,
                 value in ({"JOB": self.job} | SETTINGS | settings).items()]
        return self.mini.start("mpirun", "--mpi", "openmpi", "-n", ranks, "--hosts",
                               ",".join(hosts), "--", "env", *words, *program)

    def run(self, hosts, steps, **more):
        code, output = finish(self.start(hosts, steps, **more))
        assert code == 0, output + self.logs()
        return output

    def logs(self):
        show = "echo; hostname; tail -n 30 /tmp/backstay-0/agent.log 2>/dev/null || true"
        return "".join(self.mini.on(host["name"], show) for host in self.mini.status()["hosts"]
                       if host["state"] == "up")

    def events(self, host):
        return [json.loads(line) for line
                in self.mini.on(host,
                                f"cat /var/tmp/backstay-root/{self.job}/events.jsonl").splitlines()]

    def stop_agents(self, *hosts):
        for host in hosts:
            self.mini.on(host,
                         "pkill -TERM -f '[/]backstayd ' || true; while pgrep -f '[/]backstayd ' "
                         ">/dev/null; do sleep 0.02; done")

    def kill_agents(self, *hosts):
        for host in hosts:
            self.mini.on(host, "pkill -KILL -f '[/]backstayd ' || true")

    def fill_disk(self, host, left_mib):
        self.mini.on(host,
                     f"fallocate -l $(($(df --output=avail -B1 /var/tmp | tail -n 1) - "
                     f"{left_mib << 20})) /var/tmp/fill")

    def wait_until(self, host, condition):
        self.mini.on(host,
                     f"for try in $(seq 1000); do {condition} && exit; sleep 0.02; done; exit 1")

    def agent_after(self, host, line):
        """A program that is the agent on all hosts; on this one it runs a line of the shell before.
        """
        program = f"/mnt/shared/{self.job}-agent"
        script = f'#!/bin/sh\n[ $(hostname) = {host} ] && {line}\nexec {SETTINGS["AGENT_PROGRAM"]} "$@"'
        self.mini.on(host, f"cat >{program} <<'END'\n{script}\nEND\nchmod +x {program}")
        return program

    def agent_killed_at(self, host, failpoint):
        """The first one of this host ends there, and the one that takes its place does not."""
        return self.agent_after(host,
                                f"mkdir {self.first_agent()} 2>/dev/null && export "
                                f"BACKSTAY_FAILPOINT={failpoint}=kill@1")

    def first_agent(self):
        return f"/tmp/{self.job}-began"

    def lose(self, host):
        """Power and disk."""
        self.mini("kill", host)
        self.mini("lose-disk", host)


@pytest.fixture
def nodes(whole):
    nodes = Nodes(whole)
    yield nodes
    nodes.kill_agents(*(host["name"] for host in whole.status()["hosts"] if host["state"] == "up"))


@pytest.fixture(scope="module")
def undisturbed(cluster):
    """Results after 20 and 40 steps of six ranks."""
    return {steps: result(Nodes(cluster).run(["n0", "n1", "n2"], steps)) for steps in (20, 40)}


def result(output):
    return re.search(r"^result .*$", output, re.MULTILINE).group()


def test_every_version_is_protected_and_comes_back_where_it_was(nodes, undisturbed):
    first = nodes.run(["n0", "n1", "n2"], 20)
    assert first.count(" code=0 version=") == 4 and "waited level=3 code=0" in first
    assert result(first) == undisturbed[20]
    again = nodes.run(["n0", "n1", "n2"], 40)
    assert "restarted version=4 step=20" in again
    assert result(again) == undisturbed[40]
    if COMMAND:
        report_tells_of_all(nodes, ["n0", "n1", "n2"])


def report_tells_of_all(nodes, hosts):
    """The logs are brought together as docs/guide/several-nodes.md says."""
    logs = f"/mnt/shared/{nodes.job}-logs"
    for host in hosts:
        nodes.mini.on(host,
                      f"d={logs}/$(hostname); mkdir -p $d && cp "
                      f"/var/tmp/backstay-root/{nodes.job}/events*.jsonl $d")
    found = json.loads(nodes.mini.on(hosts[0],
                                     f"{COMMAND} report {nodes.job} --log {logs} -o "
                                     f"{logs}/page.html --json"))
    assert [(one["node"], one["newest"], one["level"], one["restarts"]) for one
            in found["nodes"]] == [
        (host, 8, "protected", 1) for host in hosts], found
    assert found["nodes_without_log"] == found["clocks"] == found["lost_nodes"] == [] and found["unreadable_lines"] == 0, found
    for version in found["versions_by_node"]:
        assert [one["node"] for one
                in version["parts"]] == hosts and version["slowest"].keys() == {"blocked",
                    "captured", "written"}, version
        reached = [version[level] for level in ("begin_s", "captured_s", "local_s", "protected_s")
                   if version[level] is not None]
        # A newer one may have come before it was protected.
        assert reached == sorted(reached), version


def test_from_the_disks_once_the_agents_have_gone(nodes, undisturbed):
    nodes.run(["n0", "n1", "n2"], 20)
    nodes.stop_agents("n0", "n1", "n2")
    again = nodes.run(["n0", "n1", "n2"], 40)
    assert "restarted version=4 step=20" in again and result(again) == undisturbed[40]


@pytest.mark.parametrize("left", [["n0", "n2"], ["n2", "n3", "n0"]], ids="-".join)
def test_a_host_is_lost_with_its_disk(nodes, undisturbed, left):
    """Fewer hosts, or one with an empty disk instead; the nodes have other numbers and the ranks
    other places.
    """
    nodes.run(["n0", "n1", "n2"], 20)
    nodes.stop_agents("n0", "n2")
    nodes.lose("n1")
    again = nodes.run(left, 40)
    assert "restarted version=4 step=20" in again and result(again) == undisturbed[40]


def test_another_host_is_lost_before_there_is_a_new_version(nodes, undisturbed):
    """What the first one had is copied again in the new run, although the old run wrote it; the
    spare takes its share.
    """
    nodes.run(["n0", "n1", "n2"], 20)
    nodes.stop_agents("n0", "n2")
    nodes.lose("n1")
    again = nodes.run(["n2", "n3", "n0"], 20)
    assert "restarted version=4 step=20" in again and f"waited level=3 code={UNSUPPORTED}" in again, "of an earlier run"
    events = f"cat /var/tmp/backstay-root/{nodes.job}/events.jsonl"
    waiting.until(lambda: sum(nodes.mini.on(host, events).count('"reprotected"') for host
                              in ("n0", "n2", "n3")) >= 2,
                  "copies of what two nodes had on the lost one")
    nodes.stop_agents("n0", "n3")
    nodes.lose("n2")
    again = nodes.run(["n3", "n0"], 40)
    assert "restarted version=4 step=20" in again and result(again) == undisturbed[40], again


def test_versions_and_copies_in_memory(nodes, undisturbed):
    """Hosts without a disk: a host that loses power comes back with nothing, and gets its part from
    the memory of others.
    """
    memory = {"storage_dir": "/dev/shm/backstay"}
    nodes.run(["n0", "n1", "n2"], 20, **memory)
    nodes.stop_agents("n0", "n2")
    nodes.mini("kill", "n1")
    nodes.mini("boot", "n1")
    assert nodes.mini.on("n1", "ls /dev/shm") == "" and not nodes.mini.on("n0",
        f"ls -d /var/tmp/*/{nodes.job} 2>/dev/null || true")
    again = nodes.run(["n0", "n1", "n2"], 40, **memory)
    assert "restarted version=4 step=20" in again and result(again) == undisturbed[40], again


def test_more_hosts(nodes, undisturbed):
    nodes.run(["n0", "n1"], 20)
    again = nodes.run(["n2", "n1", "n3", "n0"], 40)
    assert "restarted version=4 step=20" in again and result(again) == undisturbed[40]


def test_two_hosts_are_lost_with_two_replicas(nodes, undisturbed):
    nodes.run(["n0", "n1", "n2"], 20, protect_replicas=2)
    nodes.lose("n1")
    nodes.lose("n2")
    again = nodes.run(["n0", "n3"], 40)
    assert "restarted version=4 step=20" in again and result(again) == undisturbed[40]


@pytest.mark.parametrize("parity, hosts, lost, left", [
    ("3,1", ["n0", "n1", "n2", "n3"], ["n1"], ["n0", "n2", "n3"]),
    ("2,2", ["n0", "n1", "n2", "n3"], ["n1", "n2"], ["n3", "n0"]),
    pytest.param("2,1", ["n0", "n1", "n2"], ["n1"], ["n2", "n3", "n0"], marks=in_soak),
    ("1,1", ["n0", "n1"], ["n1"], ["n3", "n0"])], ids=str)
def test_hosts_are_lost_with_parity(nodes, undisturbed, parity, hosts, lost, left):
    """As many as it makes up for, with their disks: fewer hosts afterwards, or another one instead.
    """
    first = nodes.run(hosts, 20, protect_parity=parity)
    assert "waited level=3 code=0" in first
    rebuilt = f"rebuilt a lost node's file job={nodes.job} version=4"
    assert rebuilt not in nodes.logs()
    if COMMAND:
        shown = nodes.mini.on("n0",
                              f"env BACKSTAY_AGENT_SOCKET=/tmp/backstay-0/agent.sock {COMMAND} "
                              f"show {nodes.job}")
        assert f"parity ({parity.replace(',', ', ')}) is kept, and counted above" in shown, shown
    for host in lost:
        nodes.lose(host)
    again = nodes.run(left, 40, protect_parity="1,1")
    assert "restarted version=4 step=20" in again and result(again) == undisturbed[40], again + nodes.logs()
    assert rebuilt in nodes.logs()


@pytest.mark.parametrize("settings", [{"protect_replicas": 1}, {"protect_parity": "2,1"}], ids=str)
def test_streams_come_back_from_other_nodes(nodes, settings):
    nodes.run(["n0", "n1", "n2"], 20, streams=40, **settings)
    nodes.stop_agents("n0", "n2")
    nodes.lose("n1")
    again = nodes.run(["n0", "n2"], 40, streams=40, protect_replicas=1)
    assert "restarted version=4 step=20" in again and "streams as they were written" in again


def test_more_hosts_are_lost_than_parity_makes_up_for(nodes):
    nodes.run(["n0", "n1", "n2", "n3"], 20, protect_parity="3,1")
    nodes.lose("n1")
    nodes.lose("n2")
    code, output = finish(nodes.start(["n0", "n3"], 40, protect_parity="1,1"))
    assert code != 0 and re.search(r"what node \d saved cannot be rebuilt: 2 of the 3 blocks",
                                   output), output + nodes.logs()


@pytest.mark.parametrize("failpoint, settings", [
    ("parity.1", {"protect_parity": "2,1"}), ("parity.4", {"protect_parity": "2,1"}),
    ("commit.4", {})], ids=str)
def test_an_agent_is_killed_while_a_version_is_protected(nodes, undisturbed, failpoint, settings):
    """The agent that takes its place goes on with it, so that who waits has the level."""
    nodes.stop_agents("n0", "n1", "n2")
    agent = nodes.agent_killed_at("n1", failpoint)
    gate = f"/mnt/shared/{nodes.job}"
    run = nodes.start(["n0", "n1", "n2"], 10, agent_program=agent, gate_step=5, gate=gate,
                      **settings)
    nodes.wait_until("n1",
                     f"[ -e {nodes.first_agent()} ] && [ -e {gate}.reached ] && ! pgrep -f "
                     f"'[/]backstayd '")
    nodes.wait_until("n0", f"grep -q 'nodes_lost job={nodes.job} ' /tmp/backstay-0/agent.log")
    nodes.mini.on("n0", f"touch {gate}")
    code, first = finish(run)
    assert code == 0 and "waited level=3 code=0" in first, first + nodes.logs()
    events = f"/var/tmp/backstay-root/{nodes.job}/events.jsonl"
    nodes.wait_until("n0", f"""grep '"protected"' {events} | grep -q '"version":1[^0-9]'""")
    assert nodes.mini.on("n1",
                         "cat /tmp/backstay-0/agent.log").count(f"run begins job={nodes.job} ") == 2
    nodes.lose("n1")
    again = nodes.run(["n0", "n2"], 20)
    assert "restarted version=2 step=10" in again and result(again) == undisturbed[20], again + nodes.logs()


@pytest.mark.parametrize("parity, text",
                         [("3,1", "parity (3, 1) needs at least 4 nodes, there are 2"),
                                          ("1,5", "1 to 4 parity blocks")])
def test_parity_that_cannot_be_is_refused(nodes, parity, text):
    code, output = finish(nodes.start(["n0", "n1"], 10, protect_parity=parity))
    assert code != 0 and text in output, output


def test_what_cannot_be_brought_back_is_said(nodes):
    nodes.run(["n0", "n1", "n2"], 20, wait=LOCAL, protect_replicas=0)
    nodes.lose("n1")
    code, output = finish(nodes.start(["n0", "n2"], 40, protect_replicas=0))
    assert code != 0
    assert re.search(r"version 4.*rank \d+'s object", output), output


def test_more_replicas_than_other_nodes_are_refused(nodes):
    code, output = finish(nodes.start(["n0", "n1"], 10, protect_replicas=2))
    assert code != 0 and "protect.replicas is 2 and the job has 2 nodes" in output


def test_another_job_on_the_same_hosts_is_another_job(nodes, undisturbed):
    other = Nodes(nodes.mini)
    runs = [one.start(["n0", "n1", "n2"], 20) for one in (nodes, other)]
    for run in runs:
        code, output = finish(run)
        assert code == 0 and result(output) == undisturbed[20], output
    assert "restarted version=4 step=20" in other.run(["n0", "n1", "n2"], 40)


def test_a_full_disk_is_heard_of_on_every_host(nodes):
    """Why the level does not come: said at once to the ranks of the others, with node and host."""
    nodes.fill_disk("n1", left_mib=1)
    output = nodes.run(["n0", "n1", "n2"], 10, wait=LOCAL)
    nodes.mini.on("n1", "rm /var/tmp/fill")
    found = re.search(r"waited level=2 code=31 node 1 \(n1\) keeps version 2 from level local: "
                      r".*No space left on device", output)
    assert found, output + nodes.logs()
    again = nodes.run(["n0", "n1", "n2"], 20)
    assert "waited level=3 code=0" in again, again


def test_copies_that_nobody_can_keep_are_heard_of(nodes):
    nodes.fill_disk("n1", left_mib=10)
    output = nodes.run(["n0", "n1"], 5)
    nodes.mini.on("n1", "rm /var/tmp/fill")
    assert re.search(r"waited level=3 code=31 node 0 \(n0\) keeps version 1 from level protected: "
                     r"0 of 1 copies", output), (
        output + nodes.logs())
    if COMMAND:  # their disks may not give either what was written before
        shown = nodes.mini.on("n1", f"{COMMAND} show {nodes.job} 1 --dir /var/tmp/backstay-root")
        assert "node 0: version 1 not protected: 0 of 1 copies" in " ".join(shown.split()), shown


@pytest.mark.parametrize("settings, code, text", [
    ({"network_device": "ib7"}, 6, "network.device is 'ib7' on n1: no network device 'ib7'"),
    ({"network_port": "7070"}, 12, "network.port is 7070 on n1: port 7070 is in use"),
    ({"protect_domain_file": "/mnt/local/racks"}, 6, "protect.domain_file /mnt/local/racks"),
    ({"network_heartbeat_s": "1000"}, 6, "network.heartbeat_s"),
], ids=lambda value: next(iter(value)) if isinstance(value, dict) else None)
def test_a_wrong_setting_on_one_host_has_a_code_of_its_own(nodes, settings, code, text):
    """The other hosts have what the setting names."""
    nodes.mini.on("n0",
                  "set -e; ip link add ib7 type veth peer name ib8; ip address add 10.99.0.1/24 "
                  "dev ib7; ip link set ib7 up; "
                        "echo 'n0 a' >/mnt/local/racks")
    squat = nodes.mini.start("exec", "n1", "--", "python3", "-c", "import socket, sys\n"
                             "s = socket.create_server(('::', 7070), family=socket.AF_INET6, "
                             "dualstack_ipv6=True)\n"
                             "print('ready', flush=True); sys.stdin.read()", stdin=subprocess.PIPE)
    wait_for_line(squat, "ready")
    status, output = finish(nodes.start(["n0", "n1"], 10, **settings))
    finish(squat)
    nodes.mini.on("n0", "ip link del ib7; rm /mnt/local/racks")
    assert status != 0 and text in output, output
    assert STRERROR[code] in output, output


def test_names_that_do_not_resolve_are_said_to_who_waits(nodes):
    """The agents have names that do not resolve. (One known name suffices: the other agent dials
    it.)
    """
    words = [f"BACKSTAY_{key}={value}" for key, value in SETTINGS.items()]
    for host in ("n0", "n1"):
        nodes.mini.start("exec", host, "--", "unshare", "--uts", "sh", "-c",
                         f"hostname no-{host}; exec env {' '.join(words)} "
                         f"{SETTINGS['AGENT_PROGRAM']} --foreground >/dev/null")
        nodes.wait_until(host, "[ -S /tmp/backstay-0/agent.sock ]")
    output = nodes.run(["n0", "n1"], 10, wait=LOCAL)
    assert re.search(r"waited level=2 code=13 version 2 stays captured: no connection with node 1: "
                     r".*'no-n1' does not resolve", output), output


def test_domains_that_cannot_be_kept_apart_are_told(nodes):
    output = nodes.run(["n0", "n1"], 10, wait=LOCAL, protect_domain="rack")
    assert "waited level=2 code=0" in output
    assert "domains_relaxed" in nodes.mini.on("n0",
                                              f"cat /var/tmp/backstay-root/{nodes.job}/events.jsonl")


@pytest.mark.skipif(not COMMAND, reason="the command is missing")
def test_show_says_which_losses_a_version_would_survive(nodes):
    nodes.run(["n0", "n1", "n2"], 20)
    words = f"{COMMAND} show {nodes.job} 4 --dir /var/tmp/backstay-root"
    survival = json.loads(nodes.mini.on("n1", f"{words} --json"))["survival"]
    assert [len(holders) for holders in survival["holders"]] == [2, 2, 2] and survival["gone"] == []
    assert [loss["fatal"] for loss in survival["losses"]] == [0, 3, 1]
    assert " payload of this node, " in nodes.mini.on("n1", words)
    assert "BYTES: of this node" in nodes.mini.on("n1",
                                                  f"{COMMAND} ls {nodes.job} --dir "
                                                  f"/var/tmp/backstay-root")
    assert "survives the loss of any 1 of 3 nodes: yes; any 2: 3 of 3 sets lose data" in nodes.mini.on("n1", words)
    nodes.mini("kill", "n2")
    shown = nodes.mini.on("n1", words)
    assert "survives the loss of any 1 of 2 nodes: " in shown and "node 2 did not answer" in shown
    nodes.stop_agents("n0", "n1")
    shown = nodes.mini.on("n1", words)
    assert "which losses it would survive is not known: " in shown


@pytest.mark.skipif(not COMMAND, reason="the command is missing")
def test_status_shows_all_hosts(nodes):
    """Also where one agent hangs: shown without an answer after a second."""
    words = f"env BACKSTAY_AGENT_SOCKET=/tmp/backstay-0/agent.sock {COMMAND}"
    run = nodes.start(["n0", "n1", "n2"], 10, gate_step=10, gate="/mnt/shared/go")
    nodes.wait_until("n0", "[ -e /mnt/shared/go.reached ]")
    job, = json.loads(nodes.mini.on("n1", f"{words} status --json"))["jobs"]
    assert (job["node"], job["nodes"], job["ranks"], job["connected"],
            job["members_left_out"]) == (1, 3, 6, 2, 0)
    assert [(one["node"], one["state"], one["host"], one["connected"], one["newest"]) for one
            in job["members"]] == [
        (number, "ok", f"n{number}", 2, 2) for number in range(3)]
    shown = nodes.mini.on("n1", f"{words} status")
    assert "6 of 6 ranks connected on 3 nodes" in shown and re.search(r"^ +2  n2 +2 of 2 ", shown,
        re.MULTILINE), shown
    assert "6 of 6 ranks connected on 3 nodes" in nodes.mini.on("n1", f"{words} top --count 1")
    nodes.mini.on("n1", f"{words} checkpoint {nodes.job} --stop")  # rank 0 is on n0
    nodes.wait_until("n0", f"{words} status --json | grep -q '\"stop_requested\": true'")
    nodes.mini.on("n2", "pkill -STOP -f '[/]backstayd '")
    shown = nodes.mini.on("n1", f"{words} status")
    assert "4 of 6 ranks connected on 3 nodes" in shown and re.search(r"^ +2  no answer: ", shown,
        re.MULTILINE), shown
    nodes.mini.on("n2", "pkill -CONT -f '[/]backstayd '; touch /mnt/shared/go")
    code, output = finish(run)
    nodes.mini.on("n0", "rm /mnt/shared/go*")
    assert code == 0 and "waited level=3 code=0" in output, output
