"""`backstay run --transparent` and a launcher over several hosts: processes that call no MPI, saved
together; a host that dies, other hosts at the next start, an agent and a host's companion that die.
"""

import itertools
import re
import shlex
import shutil

import pytest
from conftest import HERE, finish
from minicluster import checks, waiting
from minicluster.errors import MissingFeature
from supervised import BACKSTAY, LAUNCHERS, SETTINGS, SILENT_S

SHARED = "/mnt/shared"
RANKS = 4
STEPS = 1000
SOURCE = (HERE.parent / "support" / "ranks.py").read_text()
COUNTER = re.search(r'COUNTER = """\n(.*?)"""', SOURCE, re.DOTALL)[1]
PROTECTED = {"BACKSTAY_PROTECT_REPLICAS": "1"}
kinds = pytest.mark.parametrize("kind", [
    pytest.param(kind, marks=pytest.mark.skipif(not shutil.which(words[0]),
                                                reason=f"{kind} is missing"))
    for kind, words in LAUNCHERS.items()])
names = (f"together{number}" for number in itertools.count())


class Together:
    """One job of counters; each start() is `backstay run --transparent` on a host."""

    def __init__(self, mini, launcher):
        self.mini = mini
        self.launcher = launcher
        self.job = next(names)
        self.folder = f"{SHARED}/{self.job}"
        mini.on("n0", f"mkdir {self.folder}; cat >{self.folder}/app.py <<'END'\n{COUNTER}END")

    def start(self, options, launcher_options, steps=STEPS, on="n0"):
        settings = [f"{name}={value}" for name, value in (SETTINGS | PROTECTED).items()]
        return self.mini.start(
            "exec", on, "--", "env", "-C", self.folder, *settings, BACKSTAY, "run", "--transparent",
            "--interval", 0.5, "--job", self.job, "--host-timeout", SILENT_S,
            *shlex.split(options), "--", *self.launcher, *shlex.split(launcher_options),
            "/usr/bin/python3", "app.py", steps)

    def outputs(self):
        return self.mini.on("n0", f"cd {self.folder}; tail -n 2 out.* 2>/dev/null || true")

    def protected(self, host="n0"):
        """The newest version that outlives the loss of a host."""
        settings = " ".join(f"{name}={value}" for name, value in SETTINGS.items())
        listed = self.mini.on(host, f"{settings} {BACKSTAY} ls {self.job} || true")
        found = re.findall(r"^ *(\d+) .*\bprotected\b", listed, re.MULTILINE)
        return max(map(int, found), default=0)

    def wait_for_protected(self, above=0):
        waiting.until(lambda: self.protected() > above, "a version on other hosts")


@pytest.fixture
def job(whole):
    yield lambda launcher: Together(whole, launcher)
    whole.end_agents()


@pytest.fixture(scope="module")
def undisturbed(cluster):
    """What the files hold at the end, wherever the ranks run."""
    one = Together(cluster, LAUNCHERS["mpich" if shutil.which("mpirun.mpich") else "openmpi"])
    ranks = " ".join(map(str, range(RANKS)))
    cluster.on("n0", f"cd {one.folder}; for rank in {ranks}; do PMI_RANK=$rank PMI_SIZE={RANKS} "
                     f"/usr/bin/python3 app.py {STEPS} & done; wait")
    return one.outputs()


def hosts_option(kind, *hosts):
    listed = ",".join(f"{host}:2" if kind == "openmpi" else host for host in hosts)
    return f"{'--host' if kind == 'openmpi' else '-hosts'} {listed} -n {RANKS}"


@kinds
def test_a_host_that_dies(job, whole, undisturbed, kind):
    one = job(LAUNCHERS[kind])
    running = one.start("--spares 1 --retries 9", hosts_option(kind, "n0", "n1", "n2"))
    one.wait_for_protected()
    whole("kill", "n1")
    code, output = finish(running)
    assert code == 0, output
    assert "goes on without n1, with n2 instead" in output and "from version" in output, output
    assert one.outputs() == undisturbed, output


@kinds
def test_other_hosts_at_the_next_start(job, whole, undisturbed, kind):
    import signal
    one = job(LAUNCHERS[kind])
    running = one.start("", hosts_option(kind, "n0", "n1"))
    one.wait_for_protected()
    running.send_signal(signal.SIGTERM)
    code, output = finish(running)
    assert code == 143 and "the same command starts from version" in output, output
    waiting.until(lambda: one.protected() > 0, "its last version on both")
    code, output = finish(one.start("", hosts_option(kind, "n1", "n2"), on="n1"))
    assert code == 0, output
    assert one.outputs() == undisturbed, output


def ends_on(mini, one, running, victim):
    """Once one more version is on other hosts. False: the job had ended before."""
    seen = one.protected()
    kill = f"pkill -KILL -o -f '{victim}' && echo ended || true"
    over = lambda: running.poll() is not None  # noqa: E731
    waiting.until(lambda: one.protected() > seen or over(), "a version on other hosts")
    waiting.until(lambda: "ended" in mini.on("n1", kill) or over(), f"{victim} on n1")
    return not over()


@kinds
def test_what_dies_on_another_host(job, whole, undisturbed, kind):
    """An agent costs no life of the job; a companion, and a program, one."""
    for _ in range(3):  # on a busy machine the job may end before the last victim
        one = job(LAUNCHERS[kind])
        running = one.start("--retries 9", hosts_option(kind, "n0", "n1"))
        victims = ("[/]backstayd ", "[/]backstay-companion ", "^/usr/bin/python3 app.py")
        all_ended = all(ends_on(whole, one, running, victim) for victim in victims)
        code, output = finish(running)
        assert code == 0, output
        assert one.outputs() == undisturbed, output
        if all_ended:
            return
    raise AssertionError("the job had ended before the last victim, three times")


def test_srun_in_an_allocation(job, whole, undisturbed):
    try:
        checks.require_tools(checks.SLURM_TOOLS)
    except MissingFeature as missing:
        pytest.skip(str(missing))
    whole("slurm", "up")
    try:
        one = job(["srun", "--mpi=none"])
        script = (f"cd {one.folder} && exec env "
                  + " ".join(f"{key}={value}" for key, value in (SETTINGS | PROTECTED).items())
                  + f" {BACKSTAY} run --transparent --interval 0.5 --job {one.job} --retries 9 -- "
                  f"srun -n {RANKS} /usr/bin/python3 app.py {STEPS}")
        running = whole.start("exec", "n0", "--", "salloc", "-N2", "-n4", "--overcommit", "bash",
                              "-c", script)
        waiting.until(lambda: "out.3" in one.outputs(), "all ranks")
        one.wait_for_protected()
        whole.on("n1", "pkill -KILL -o -f '[/]backstay-companion '")
        code, output = finish(running)
        assert code == 0 and "restart 1 of 9 from version" in output, output
        assert one.outputs() == undisturbed, output
    finally:
        whole("slurm", "down")
