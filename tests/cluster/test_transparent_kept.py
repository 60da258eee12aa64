"""Unmodified processes over several hosts whose versions keep what did not change: a host dies, or
all that is left is the durable directory, and the job goes on from such a version.

Programs take each step when a test lets them, so what a version holds does not depend on time.
"""

import json
import re
import signal
import sys

import pytest
from conftest import HERE, finish, in_soak
from minicluster import waiting
from supervised import BACKSTAY, LAUNCHERS, SETTINGS
from whole_processes import RANKS, REPLICAS, SHARED, Job, hosts_option, kinds

STEPS = 5
# Writes to some of its pages in each step, and says what all of its memory holds.
WRITES = """
import os, random, sys, time, zlib
rank = next(os.environ[name] for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK") if name in os.environ)
draw = random.Random(int(rank))
data = bytearray(draw.randbytes(8 << 20))
with open(f"out.{rank}", "w") as out:
    print("begun", zlib.crc32(data), file=out, flush=True)
    for step in range(1, int(sys.argv[1]) + 1):
        while not os.path.exists(f"step{step}"):
            time.sleep(0.01)
        for _ in range(150):  # many more than Python's own, so a later version keeps them
            page = draw.randrange(len(data) >> 12) << 12
            data[page : page + 4096] = draw.randbytes(4096)
        print(step, zlib.crc32(data), file=out, flush=True)
    for at in range(0, len(data), 1 << 20):
        print(at, zlib.crc32(data[at : at + (1 << 20)]), file=out)
"""


class Writers(Job):
    program = WRITES

    def __init__(self, mini, launcher, **settings):
        super().__init__(mini, launcher, BACKSTAY_POOL_SIZE_MIB="64", **settings)

    def command(self):
        return [*super().command(), STEPS]

    def run_options(self):
        return []

    def step(self, number):
        self.mini.on("n0", f"touch {self.folder}/step{number}")

    def all_wrote(self, lines):
        count = f"cat {self.folder}/out.* 2>/dev/null | wc -l"
        waiting.until(lambda: int(self.mini.on("n0", count)) >= lines * RANKS
                      or self.running.poll() is not None, "their output")
        assert self.running.poll() is None, self.running.communicate()[0]

    def save(self, level, host="n0"):
        return self.mini.on(host, f"{self.environment} {BACKSTAY} checkpoint {self.job} --wait "
                                  f"--level {level}")

    def versions_of_steps(self, steps, level):
        """A version before the first step, and one after each."""
        self.all_wrote(1)
        self.save(level)
        for step in range(1, steps + 1):
            self.step(step)
            self.all_wrote(step + 1)
            self.save(level)

    def needs(self, version, host="n0", more=""):
        shown = self.mini.on(
            host, f"{self.environment} {BACKSTAY} show {self.job} {version} {more} --json")
        return json.loads(shown)["needs"]

    def newest(self, host="n0"):
        return max(found["version"] for found in self.verify(host))

    def segment_bytes(self, version, host):
        """Of all parts on this host, copies too."""
        folder = f"/var/tmp/backstay-root/{self.job}/v{version:016d}"
        return int(self.mini.on(host, f"cat {folder}/*.segment | wc -c"))

    def verify(self, host, more=""):
        return json.loads(self.mini.on(
            host, f"{self.environment} {BACKSTAY} verify {self.job} {more} --json"))["versions"]

    def read_by_numpy(self, version, host):
        """Checks all that lies on this host, also what the parts there need."""
        folder = f"/var/tmp/backstay-root/{self.job}/v{version:016d}"
        reads = (f"import backstay.format; version = backstay.format.open('{folder}'); "
                 "print(*(rank for rank in version.ranks_here() "
                 "if len(version.image(rank).areas)))")
        path = HERE.parent.parent / "python"
        return self.mini.on(host, f'PYTHONPATH={path} {sys.executable} -c "{reads}"').split()

    def let_end(self):
        for step in range(1, STEPS + 1):
            self.step(step)


@pytest.fixture
def job(whole):
    yield lambda *words, **settings: Writers(whole, *words, **settings)
    whole.end_agents()


@pytest.fixture(scope="module")
def undisturbed(cluster):
    one = Writers(cluster, [])
    one.let_end()
    return one.run_undisturbed()


def goes_on_without_n1(one, whole, running, undisturbed):
    whole("kill", "n1")
    one.let_end()
    code, output = finish(running)
    assert code == 0, output
    assert "goes on without n1" in output and "from version 3" in output, output
    assert one.outputs() == undisturbed, output
    return output


@kinds
def test_a_host_dies_and_the_job_goes_on_elsewhere(job, whole, undisturbed, kind):
    """Its ranks' chunks lie in three versions, of which the spare host has none."""
    one = job(LAUNCHERS[kind], **REPLICAS)
    running = one.start("--spares 1 --retries 9", hosts_option(kind, "n0", "n1", "n2"))
    one.versions_of_steps(2, "protected")
    assert [one.needs(version) for version in (1, 2, 3)] == [[], [1], [1, 2]]
    assert all(found["good"] for found in one.verify("n1"))
    assert one.read_by_numpy(3, "n1") == ["0", "1", "2", "3"], "also copies of the other's part"
    output = goes_on_without_n1(one, whole, running, undisturbed)
    assert "with n2 instead" in output, output


def test_parity_makes_up_for_a_host_with_all_that_its_version_needs(job, whole, undisturbed):
    one = job(LAUNCHERS["openmpi"], BACKSTAY_PROTECT_PARITY="2,1")
    running = one.start("--retries 9 --oversubscribe", hosts_option("openmpi", "n0", "n1", "n2"))
    one.versions_of_steps(2, "protected")
    assert one.needs(3) == [1, 2]
    goes_on_without_n1(one, whole, running, undisturbed)


def test_other_hosts_go_on_from_the_durable_directory_alone(job, whole, undisturbed):
    """The version is saved as the program ends; it needs those before it."""
    shared = f"{SHARED}/durable-kept"
    whole.on("n0", f"mkdir -m 700 {shared}")
    durable = f"--dir {shared}"
    one = job(LAUNCHERS["openmpi"], BACKSTAY_PROTECT_REPLICAS="0", BACKSTAY_DURABLE_DIR=shared)
    running = one.start("", hosts_option("openmpi", "n0", "n1"))
    one.versions_of_steps(2, "durable")
    assert one.needs(3, "n3", durable) == [1, 2]
    running.send_signal(signal.SIGTERM)
    code, output = finish(running)
    assert code == 143 and "the same command starts from version 4" in output, output
    durable_record = f"{shared}/{one.job}/v0000000000000004/commit.durable"
    waiting.until(lambda: whole.run("exec", "n3", "--", "test", "-e", durable_record)[0] == 0,
                  "its last version there")
    assert one.needs(4, "n3", durable)
    assert all(found["good"] for found in one.verify("n3", durable))
    for host in ("n0", "n1"):
        whole("kill", host)
        whole("lose-disk", host)
    one.mini("restore-disk", "n0")
    one.mini("boot", "n0")
    one.let_end()
    code, output = finish(one.start("", hosts_option("openmpi", "n3", "n2"), on="n3"))
    assert code == 0, output
    assert one.outputs() == undisturbed, output


def test_an_agent_that_dies_ends_the_chain_on_all_hosts(job, whole, undisturbed):
    one = job(LAUNCHERS["openmpi"], **REPLICAS)
    running = one.start("--retries 9", hosts_option("openmpi", "n0", "n1"))
    one.versions_of_steps(1, "protected")
    assert one.needs(2) == [1]
    whole.on("n1", "pkill -KILL -f '[/]backstayd '")
    one.step(2)
    one.all_wrote(3)
    one.save("protected")
    newest = one.newest()
    assert one.needs(newest, "n0") == [] and one.needs(newest, "n1") == []
    one.let_end()
    code, output = finish(running)
    assert code == 0, output
    assert one.outputs() == undisturbed, output


@kinds
def test_the_first_version_after_a_restart_keeps_what_did_not_change(job, whole, undisturbed, kind):
    """On the same hosts, and then on hosts that have changed their numbers: each has copies of what
    the other one wrote."""
    one = job(LAUNCHERS[kind], **REPLICAS)
    running = one.start("--retries 9", hosts_option(kind, "n0", "n1"))
    one.versions_of_steps(1, "protected")
    whole.on("n1", "pkill -KILL -o -f '[/]backstay-companion '")
    one.step(2)
    one.all_wrote(3)
    one.save("protected")
    first = one.newest()
    for host in ("n0", "n1"):
        assert {1, 2} <= set(one.needs(first, host))
        assert one.segment_bytes(first, host) < one.segment_bytes(1, host) / 4
    running.send_signal(signal.SIGTERM)
    code, output = finish(running)
    assert code == 143 and "restart 1 of 9 from version" in output, output
    last = one.newest()
    running = one.start("--retries 9 --oversubscribe", hosts_option(kind, "n1", "n0"))
    one.step(3)
    one.all_wrote(4)
    one.save("protected")
    after = one.newest()
    assert after > last and f"starts from version {last}" in output, output
    for host in ("n0", "n1"):
        assert one.needs(after, host)
        assert one.segment_bytes(after, host) < one.segment_bytes(1, host) / 4
        assert all(found["good"] for found in one.verify(host))
        assert one.read_by_numpy(after, host) == ["0", "1", "2", "3"], "also copies"
    whole("kill", "n1")
    one.let_end()
    code, output = finish(running)
    assert code == 0 and f"from version {after}" in output, output
    assert one.outputs() == undisturbed, output


def test_parity_of_an_earlier_run_counts_after_a_restart(job, whole, undisturbed):
    """The first version keeps what did not change, is protected, and is made again with what it
    needs of the run before."""
    one = job(LAUNCHERS["openmpi"], BACKSTAY_PROTECT_PARITY="2,1")
    running = one.start("--retries 9 --oversubscribe", hosts_option("openmpi", "n0", "n1", "n2"))
    one.versions_of_steps(1, "protected")
    whole.on("n1", "pkill -KILL -o -f '[/]backstay-companion '")
    one.step(2)
    one.all_wrote(3)
    one.save("protected")
    first = one.newest()
    assert {1, 2} & set(one.needs(first))  # of 2 there may be nothing left that did not change
    whole("kill", "n1")
    one.let_end()
    code, output = finish(running)
    assert code == 0 and "goes on without n1" in output, output
    assert f"from version {first}" in output, output
    assert one.outputs() == undisturbed, output


# Red once on a busy machine: the version in which the agent was to die was completed.
@in_soak
def test_an_agent_dies_as_it_writes_such_a_version(job, whole, undisturbed):
    """The ranks of the other host have theirs, and do not wait for a level that never comes."""
    killed = f"{SHARED}/agent-killed"
    agent = SETTINGS["BACKSTAY_AGENT_PROGRAM"]
    script = ("#!/bin/sh\n[ $(hostname) = n1 ] && mkdir /tmp/kept-began 2>/dev/null && "
              f'export BACKSTAY_FAILPOINT=commit.2=kill@2\nexec {agent} "$@"')
    whole.on("n0", f"cat >{killed} <<'END'\n{script}\nEND\nchmod +x {killed}")
    one = job(LAUNCHERS["openmpi"], BACKSTAY_AGENT_PROGRAM=killed, **REPLICAS)
    whole.end_agents()
    running = one.start("--retries 9", hosts_option("openmpi", "n0", "n1"))
    one.versions_of_steps(0, "protected")
    one.step(1)
    one.all_wrote(2)
    save = f"{one.environment} {BACKSTAY} checkpoint {one.job} --wait --level protected --timeout 5"
    saved = waiting.until(lambda: re.search(r"version (\d+) is protected",
                                            one.mini.on("n0", f"{save} || true")), "a version")
    assert int(saved[1]) > 2 and one.needs(3) == []
    one.let_end()
    code, output = finish(running)
    assert code == 0 and "restart 1" not in output, output
    assert one.outputs() == undisturbed, output
