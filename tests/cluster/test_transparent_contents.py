"""`backstay run --transparent --capture-files` over several hosts: ranks that overwrite files in
place, on shared storage and on the disk of their host, go on after the loss of a host.
"""

import re

import pytest
from conftest import finish
from minicluster import waiting
from supervised import LAUNCHERS
from whole_processes import REPLICAS, Job, hosts_option, kinds, slurm

STEPS = 800
# Each step adds to what stands in both files, so a step that is done twice, or not at all, shows.
ADDS = """
import os, random, sys, time, zlib
rank = next(os.environ[name] for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
            if name in os.environ)
draw = random.Random(int(rank))
local = f"/var/tmp/{sys.argv[2]}"
os.makedirs(local, exist_ok=True)
files = [open(f"{folder}/held.{rank}", "w+b", 0) for folder in (".", local)]
for file in files:
    file.write(bytes(200000))
for step in range(int(sys.argv[1])):
    for file in files:
        at = draw.randrange(199000)
        new = bytes((byte + step) % 256 for byte in os.pread(file.fileno(), 1000, at))
        os.pwrite(file.fileno(), new, at)
    time.sleep(0.005)
with open(f"out.{rank}", "w") as out:
    for file in files:
        print(zlib.crc32(os.pread(file.fileno(), 300000, 0)), os.stat(file.name).st_size, file=out)
"""


class Adders(Job):
    program = ADDS

    def command(self):
        return [*super().command(), STEPS, self.job]

    def run_options(self):
        return [*super().run_options(), "--capture-files", "held.*",
                "--capture-files", f"/var/tmp/{self.job}/*"]


@pytest.fixture
def job(whole):
    yield lambda launcher: Adders(whole, launcher, **REPLICAS)
    whole.end_agents()


@pytest.fixture(scope="module")
def undisturbed(cluster):
    return Adders(cluster, []).run_undisturbed()


@kinds
def test_a_host_that_dies(job, whole, undisturbed, kind):
    one = job(LAUNCHERS[kind])
    whole.on("n2", f"mkdir -p /var/tmp/{one.job}")
    running = one.start("--spares 1 --retries 9", hosts_option(kind, "n0", "n1", "n2"))
    one.wait_for_protected()
    whole("kill", "n1")
    code, output = finish(running)
    assert code == 0, output
    assert "goes on without n1, with n2 instead" in output and "from version" in output, output
    assert one.outputs() == undisturbed, output
    assert "cannot be saved" not in output, output


def test_a_host_that_has_no_such_folder(job, whole, undisturbed):
    """The restart is refused by name; it goes on once the folder is there."""
    one = job(LAUNCHERS["openmpi"])
    running = one.start("--spares 1 --retries 9", hosts_option("openmpi", "n0", "n1", "n2"))
    one.wait_for_protected()
    whole("kill", "n1")
    code, output = finish(running)
    assert code == 78, output
    assert re.search(rf"rank \d \(n2\): /var/tmp/{one.job}/, the folder of "
                     rf"/var/tmp/{one.job}/held.\d, is missing", output), output
    whole.on("n2", f"mkdir /var/tmp/{one.job}")
    code, output = finish(one.start("", hosts_option("openmpi", "n0", "n2")))
    assert code == 0, output
    assert one.outputs() == undisturbed, output


@kinds
def test_a_rank_that_dies_on_another_host(job, whole, undisturbed, kind):
    one = job(LAUNCHERS[kind])
    running = one.start("--retries 9", hosts_option(kind, "n0", "n1"))
    for _ in range(3):
        one.wait_for_protected(above=one.protected())
        kill = "pkill -KILL -o -f '^/usr/bin/python3 app.py' && echo ended || true"
        waiting.until(lambda: "ended" in whole.on("n1", kill), "a rank on n1")
    code, output = finish(running)
    assert code == 0, output
    assert one.outputs() == undisturbed, output


def test_srun_in_an_allocation(job, whole, undisturbed):
    with slurm(whole):
        one = job(["srun", "--mpi=none"])
        running = one.start_in_allocation("--retries 9")
        one.wait_for_protected()
        whole.on("n1", "pkill -KILL -o -f '[/]backstay-companion '")
        code, output = finish(running)
        assert code == 0 and "restart 1 of 9 from version" in output, output
        assert one.outputs() == undisturbed, output
