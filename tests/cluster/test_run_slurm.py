"""`backstay run` in jobs of Slurm: jobs that share nodes, Slurm's switches, a node that dies, the
end of the time limit, the queue again; agents in steps of their own.

What one job waits for (Slurm's clocks, the silence of a dead node) goes on while the next test
looks at another one.
"""

import json
import re

import pytest

from conftest import finish
from minicluster import checks, waiting
from minicluster.errors import MissingFeature
from supervised import BACKSTAY, JOBS, LAUNCHERS, SETTINGS, Supervised, result

pytestmark = pytest.mark.skipif(not JOBS["openmpi"], reason="Open MPI is missing")
SHARED = "/mnt/shared"
SLURM_UP = ("slurm", "up", "--silence-s", 6, "--switches", 2)
SILENT_S = 6
STEPS = 150
GATE = 21  # behind a version that is on other nodes too
DEADLINE_S = 120
VARIABLES = SETTINGS | {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,vader,self",
                        "OMPI_MCA_btl_tcp_if_include": "eth0",
                        "OMPI_MCA_mpi_yield_when_idle": "1"}
TWO_NODES = "--nodelist=n[0-1] --nodes=2"
OTHER_USER = "nobody"


@pytest.fixture(scope="module")
def slurm(cluster):
    try:
        checks.require_tools(checks.SLURM_TOOLS)
    except MissingFeature as missing:
        pytest.skip(str(missing))
    cluster(*SLURM_UP)
    if "pmix" not in cluster.run("exec", "n0", "--", "srun", "--mpi=list")[1]:
        pytest.skip("this Slurm has no PMIx")
    yield cluster
    cluster("up", 4)
    cluster("slurm", "down")


class Batch:
    """A batch job; its script is that of docs/guide/slurm.md but for names and settings. Jobs share
    nodes.
    """

    count = 0

    def __init__(self, mini, name, directives, options, program, user="root"):
        Batch.count += 1
        self.mini = mini
        self.name = name
        self.user = user
        self.output = f"{SHARED}/{Batch.count}.out"
        self.gate = f"{SHARED}/{Batch.count}.gate"
        program = program.replace("GATE", f"safe_step={GATE - 1} gate_step={GATE} gate={self.gate}")
        exports = " ".join(f"{key}={value}" for key, value in VARIABLES.items())
        script = f"""#!/bin/bash
#SBATCH --no-kill --requeue --open-mode=append --output={self.output}
#SBATCH --oversubscribe {directives}
export {exports}
ulimit -c unlimited
exec {BACKSTAY} run --job {name} --host-timeout {SILENT_S} --requeue {options} -- srun --mpi=pmix {program}
"""
        mini.on("n0",
                f"chmod 1777 {SHARED}; install -m 666 /dev/null {self.output}; cat "
                f">{self.output}.sh <<'END'\n{script}END")
        self.submit()

    def submit(self):
        self.number = self.as_user(f"sbatch --chdir={SHARED} --parsable {self.output}.sh").strip()

    def as_user(self, script):
        login = f"setpriv --reuid={self.user} --regid=$(id -g {self.user}) --clear-groups --reset-env env SLURM_CONF=$SLURM_CONF"
        return self.mini.on("n0", f"{login} bash -c '{script}'")

    # Of a rank that died as it started.
    stacks = (f"cd {SHARED}; for core in core*; do [ -e $core ] && gdb -batch -ex "
              f"'thread apply all bt' {JOBS['openmpi']} $core; done")

    def text(self):
        return self.mini.on("n0", f"cat {self.output}")

    def wait_for(self, what):
        waiting.until(lambda: what in self.text(), f"'{what}' from job {self.number}", DEADLINE_S)

    def wait_at_gate(self, again=True):
        """Open MPI 4.1 may call a null pointer in MPI_Init (docs/debts.md): then once more."""
        crash = f"grep -q 'Failing at address: (nil)' {self.output}" if again else "false"
        said = self.mini.on("n0",
                            f"for try in $(seq 2000); do [ -e {self.gate}.reached ] && exit; "
                            f"{crash} && echo crashed && exit; sleep 0.05; "
                            f"done; cat {self.output}; {self.stacks}; exit 1")
        if "crashed" in said:
            self.as_user(f"scancel {self.number}")
            self.wait_for_end("CANCELLED")
            self.submit()
            self.wait_at_gate(again=False)

    def open_gate(self):
        self.mini.on("n0", f"touch {self.gate}")

    def state(self):
        return self.mini.on("n0", f"squeue -h -t all -j {self.number} -o %T").strip()

    def wait_for_end(self, state="COMPLETED"):
        waiting.until(lambda: self.state() in ("COMPLETED", "FAILED", "CANCELLED"),
                      f"the end of job {self.number}", DEADLINE_S)
        assert self.state() == state, self.text() + self.mini.on("n0", f"{self.stacks}; true")

    def command(self, words, node="n0"):
        """`backstay` on a node, inside the allocation."""
        return self.as_user(f"srun --overlap --jobid={self.number} -N1 -n1 -w {node} {BACKSTAY} "
                            f"{words}")

    def agents(self):
        """Process ids of its agents on its nodes."""
        nodes = self.mini.on("n0",
                             f"scontrol show hostnames $(squeue -h -j {self.number} -o %N)").split()
        return {node: agents_on(self.mini, node, self.number) for node in nodes}


def agents_on(mini, node, number):
    """Their sockets carry Slurm's number of their job."""
    return mini.on(node, f"pgrep -f '[/]backstayd .*-{number}/agent.sock' || true").split()


def agents_step(mini, batch):
    """The nodes of the job's step of agents."""
    return mini.on("n0",
                   f"squeue -h -s -j {batch.number} -o '%j %N' | sed -n 's/^backstay-agents //p'").strip()


def undisturbed(cluster, ranks, steps):
    """The result for these ranks and steps; its agent is its own and is ended."""
    socket = {"BACKSTAY_AGENT_SOCKET": "/tmp/undisturbed/agent.sock"}
    settings = [f"{name}={value}" for name, value in (SETTINGS | socket).items()]
    job = Supervised(cluster).job
    code, output = finish(cluster.start(
        "exec", "n0", "--", "env", *settings, BACKSTAY, "run", "--job", job, "--",
        *LAUNCHERS["openmpi"],
        "--host", f"n0:{ranks}", "-n", ranks, JOBS["openmpi"], steps, 50))
    cluster("exec", "n0", "--", "env", *settings, BACKSTAY, "agent", "stop", "--now")
    assert code == 0, output
    return result(output)


@pytest.fixture(scope="module")
def limited(slurm):
    """A job that is warned 15 to 45 s after its start: Slurm looks twice a minute. The others run
    meanwhile.
    """
    return Batch(slurm, "limited", "--nodelist=n3 --nodes=1 --time=1 --signal=B:TERM@15", "",
                 f"-n 2 {JOBS['openmpi']} 1000000 5 until_stop=1 step_ms=200 after_restart=20")


@pytest.fixture(scope="module")
def jobs(slurm, limited):
    """Five jobs on n1, four of one user and one of another, all at their gates: one goes to all
    nodes, one will lose n1 and has a spare, one will lose it and has none, of one the script runs
    there."""
    program = f"{JOBS['openmpi']} {STEPS} 5 step_ms=20 GATE"
    batches = {"everywhere": Batch(slurm, "everywhere", "--nodelist=n[0-3] --nodes=4", "",
                                   f"-n 4 {program}"),
               "survivor": Batch(slurm, "survivor", "--nodelist=n[0-2] --nodes=3", "--spares 1",
                                 f"-n 4 {program}"),
               "waiting": Batch(slurm, "waiting", TWO_NODES, "", f"-n 4 {program}"),
               "headless": Batch(slurm, "headless", "--nodelist=n[1-3] --nodes=3", "",
                                 f"-n 4 {program}"),
               "others": Batch(slurm, "survivor", TWO_NODES, "", f"-n 2 {program}", OTHER_USER)}
    for batch in batches.values():
        batch.wait_at_gate()
    return batches


def test_slurms_switches_are_failure_domains(jobs):
    """n0 and n2 hang on one switch, n1 and n3 on the other: all copies go to the other one."""
    job, = json.loads(jobs["everywhere"].command("status --json"))["jobs"]
    assert [(one["host"], one["domain"]) for one in job["members"]] == [("n0", "s0"), ("n1", "s1"),
        ("n2", "s0"), ("n3", "s1")]
    assert job["notes"] == []
    assert "failure domains: s0 (0, 2), s1 (1, 3)" in jobs["everywhere"].command("status")
    survival = json.loads(jobs["everywhere"].command("show everywhere 4 --json"))["survival"]
    for node, holders in enumerate(survival["holders"]):
        assert {holder % 2 for holder in holders} == {0, 1} and node in holders, survival


def test_jobs_on_the_same_nodes_do_not_see_each_other(slurm, jobs):
    agents = {name: batch.agents() for name, batch in jobs.items()}
    for name, batch in jobs.items():
        assert {len(pids) for pids in agents[name].values()} == {1}, agents
        status = json.loads(batch.command("status --json", "n1"))
        job, = status["jobs"]
        assert (job["job"], job["dir"]) == (batch.name, f"/var/tmp/backstay-{batch.user}")
        assert [str(status["pid"])] == agents[name]["n1"]

    # The same name again, of the same user.
    again = Batch(slurm, "survivor", TWO_NODES, "", f"-n 2 {JOBS['openmpi']} 10 5")
    again.wait_for_end("FAILED")
    holder = f"process {agents['survivor']['n0'][0]} on n0"
    assert re.search(f"job survivor is running here already: another agent .{holder}.* give this "
                     f"one another name", again.text())

    # One is cancelled: its agents go with it, and those of the others stay.
    gone = jobs.pop("everywhere")
    slurm.on("n0", f"scancel {gone.number}")
    gone.wait_for_end("CANCELLED")
    for node in agents.pop("everywhere"):
        waiting.until(lambda: agents_on(slurm, node, gone.number) == [],
                      f"the end of the agent on {node}")
    assert {name: batch.agents() for name, batch in jobs.items()} == agents
    others = jobs.pop("others")
    others.open_gate()
    others.wait_for_end()
    assert result(others.text())


@pytest.fixture(scope="module")
def lost(slurm, jobs):
    """n1 loses its power under three jobs."""
    assert agents_step(slurm, jobs["survivor"]) == "n[0-2]"
    for batch in jobs.values():
        batch.open_gate()
    for batch in jobs.values():
        batch.wait_for(f"checkpoint step={GATE + 9} ")
    slurm("kill", "n1")


@pytest.fixture(scope="module")
def expected(slurm, lost):
    """What no loss has touched; Slurm has not seen yet that n1 is dead."""
    return undisturbed(slurm, 4, STEPS)


def test_too_few_nodes_are_left_and_the_job_waits_for_others(slurm, jobs, lost, expected):
    """The dead one comes back with its disk."""
    batch = jobs["waiting"]
    batch.wait_for("n0 have 2 slots and the job has 4 ranks")
    batch.wait_for("the job goes back into the queue of Slurm")
    slurm("boot", "n1")
    slurm(*SLURM_UP)
    batch.wait_for_end()
    text = batch.text()
    assert "restarted version=" in text and result(text) == expected


def test_the_node_dies_that_the_script_runs_on(slurm, jobs, lost):
    """With --no-kill Slurm keeps the job on the other nodes, without its script: from there it goes
    back into the queue.
    """
    batch = jobs["headless"]
    waiting.until(lambda: "Restarts=1 " in slurm.on("n0", f"scontrol show job {batch.number}"),
                  "the queue", DEADLINE_S)
    slurm.on("n0", f"scancel {batch.number}")  # the others have shown how it goes on


def test_a_node_that_dies_in_the_allocation(slurm, jobs, lost, expected):
    batch = jobs["survivor"]
    batch.wait_for_end()
    text = batch.text()
    assert "n1 is gone: no answer" in text and "goes on without n1, with n2 instead, on n0, n2" in text
    assert re.search(r"restart 1 of 3 from version \d+", text) and "restarted version=" in text
    assert result(text) == expected
    waiting.until(lambda: agents_step(slurm, batch) == "", "the end of the step of agents")


def test_the_time_limit(slurm, limited):
    """Slurm's signal comes, the program saves and ends, the job is put into the queue and goes on.
    """
    limited.wait_for("the job goes back into the queue of Slurm")
    text = limited.text()
    assert "asked the program to save and end" in text
    assert "stopped; the same command starts from version 1, captured" in text
    stopped = int(re.search(r"^result step=(\d+) ", text, re.MULTILINE).group(1))
    expected = undisturbed(slurm, 2, stopped + 20)
    limited.wait_for_end()
    text = limited.text()
    assert "restarted version=1 step=" in text
    assert result(text[text.index("restarted version"):]) == expected


def test_the_library_for_files_is_in_each_rank_and_in_nothing_of_slurms(slurm):
    count = "$(grep -c libbackstay_files.so /proc/{}/maps)"
    program = f"sh -c 'echo rank $(hostname): {count.format('$$')}, above: {count.format('$PPID')}'"
    batch = Batch(slurm, "files", "--nodelist=n[2-3] --nodes=2",
                  "--capture-files 'out/*' --capture-files '*.restart'", f"-N 2 -n 2 {program}")
    batch.wait_for_end()
    text = batch.text()
    for node in ("n2", "n3"):
        assert re.search(rf"^rank {node}: [1-9]\d*, above: 0$", text, re.MULTILINE), text
