"""`backstay run` in jobs of Slurm: a node that dies, the end of the time limit, the queue again; agents in a step of their own."""

import os
import re

import pytest

from conftest import finish
from minicluster import checks, waiting
from minicluster.errors import MissingFeature
from supervised import BACKSTAY, JOBS, SETTINGS, SILENT_S, Supervised, result

pytestmark = pytest.mark.skipif(not JOBS["openmpi"], reason="Open MPI is missing")
SHARED = "/mnt/shared"
SLURM_SILENCE_S = 6
STEPS = 150
DEADLINE_S = 120
VARIABLES = SETTINGS | {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,vader,self", "OMPI_MCA_btl_tcp_if_include": "eth0"}


@pytest.fixture(scope="module")
def slurm(cluster):
    try:
        checks.require_tools(checks.SLURM_TOOLS)
    except MissingFeature as missing:
        pytest.skip(str(missing))
    cluster("slurm", "up", "--silence-s", SLURM_SILENCE_S)
    if "pmix" not in cluster.run("exec", "n0", "--", "srun", "--mpi=list")[1]:
        pytest.skip("this Slurm has no PMIx")
    yield cluster
    cluster("up", 4)
    cluster("slurm", "down")


class Batch:
    """A batch job; its script is that of docs/guide/slurm.md but for names and settings."""

    def __init__(self, mini, name, directives, options, program):
        self.mini = mini
        self.output = f"{SHARED}/{name}.out"
        exports = " ".join(f"{key}={value}" for key, value in VARIABLES.items())
        script = f"""#!/bin/bash
#SBATCH --no-kill --requeue --open-mode=append --output={self.output}
#SBATCH {directives}
export {exports}
exec {BACKSTAY} run --job {name} --host-timeout {SILENT_S} --requeue {options} -- srun --mpi=pmix {program}
"""
        mini.on("n0", f"cat >{SHARED}/{name} <<'END'\n{script}END")
        self.number = mini.on("n0", f"sbatch --parsable {SHARED}/{name}").strip()

    def text(self):
        return self.mini.on("n0", f"cat {self.output} 2>/dev/null || true")

    def wait_for(self, what):
        waiting.until(lambda: what in self.text(), f"'{what}' from job {self.number}", DEADLINE_S)

    def state(self):
        return self.mini.on("n0", f"squeue -h -t all -j {self.number} -o %T").strip()

    def wait_for_end(self):
        waiting.until(lambda: self.state() in ("COMPLETED", "FAILED"), f"the end of job {self.number}", DEADLINE_S)
        assert self.state() == "COMPLETED", self.text()


def agents_step(mini, batch):
    """The nodes of the job's step of agents."""
    return mini.on("n0", f"squeue -h -s -j {batch.number} -o '%j %N' | sed -n 's/^backstay-agents //p'").strip()


def undisturbed(cluster, ranks, steps):
    job = Supervised(cluster)
    code, output = job.run("", f"--host n0:{ranks} -n {ranks}", f"{steps} 50")
    job.end_agents()
    assert code == 0, output
    return result(output)


@pytest.fixture(scope="module")
def limited(slurm):
    """A job that is warned 15 to 45 s after its start: Slurm looks twice a minute. The others run meanwhile."""
    return Batch(slurm, "limited", "--nodelist=n3 --nodes=1 --time=1 --signal=B:TERM@15", "",
                 f"-n 2 {JOBS['openmpi']} 1000000 5 until_stop=1 step_ms=100 after_restart=20")


def test_a_node_that_dies_in_the_allocation(slurm, limited):
    expected = undisturbed(slurm, 4, STEPS)
    batch = Batch(slurm, "survivor", "--nodelist=n[0-2] --nodes=3", "--spares 1", f"-n 4 {JOBS['openmpi']} {STEPS} 5 safe_step=20")
    batch.wait_for("protected step=20")
    assert agents_step(slurm, batch) == "n[0-2]"
    slurm("kill", "n1")
    batch.wait_for_end()
    text = batch.text()
    assert "n1 is gone: no answer" in text and "goes on without n1, with n2 instead, on n0, n2" in text
    assert re.search(r"restart 1 of 3 from version \d+", text) and "restarted version=" in text
    assert result(text) == expected
    waiting.until(lambda: agents_step(slurm, batch) == "", "the end of the step of agents")


def test_too_few_nodes_are_left_and_the_job_waits_for_others(slurm):
    """The dead one comes back with its disk."""
    expected = undisturbed(slurm, 4, STEPS)
    slurm("up", 4)
    slurm("slurm", "up", "--silence-s", SLURM_SILENCE_S)
    batch = Batch(slurm, "waiting", "--nodelist=n[0-1] --nodes=2", "", f"-n 4 {JOBS['openmpi']} {STEPS} 5 safe_step=20")
    batch.wait_for("protected step=20")
    slurm("kill", "n1")
    batch.wait_for("n0 have 2 slots and the job has 4 ranks")
    batch.wait_for("the job goes back into the queue of Slurm")
    slurm("boot", "n1")
    slurm("slurm", "up", "--silence-s", SLURM_SILENCE_S)
    batch.wait_for_end()
    text = batch.text()
    assert "restarted version=" in text and result(text) == expected


def test_the_time_limit(slurm, limited):
    """Slurm's signal comes, the program saves and ends, the job is put into the queue and goes on."""
    limited.wait_for("the job goes back into the queue of Slurm")
    limited.wait_for_end()
    text = limited.text()
    assert "asked the program to save and end" in text
    assert "stopped; the same command starts from version 1, captured" in text
    assert "restarted version=1 step=" in text
    results = re.findall(r"^result step=(\d+) .*$", text, re.MULTILINE)
    stopped, ended = (int(steps) for steps in results)
    assert ended == stopped + 20
    assert result(text[text.index("restarted version"):]) == undisturbed(slurm, 2, ended)
