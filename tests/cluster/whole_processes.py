"""Jobs of unmodified programs, saved with `backstay run --transparent` on several hosts."""

import contextlib
import itertools
import re
import shlex
import shutil

import pytest
from minicluster import checks, waiting
from minicluster.errors import MissingFeature
from supervised import BACKSTAY, LAUNCHERS, SETTINGS, SILENT_S

SHARED = "/mnt/shared"
RANKS = 4
REPLICAS = {"BACKSTAY_PROTECT_REPLICAS": "1"}
kinds = pytest.mark.parametrize("kind", [
    pytest.param(kind, marks=pytest.mark.skipif(not shutil.which(words[0]),
                                                reason=f"{kind} is missing"))
    for kind, words in LAUNCHERS.items()])


def hosts_option(kind, *hosts):
    listed = ",".join(f"{host}:2" if kind == "openmpi" else host for host in hosts)
    return f"{'--host' if kind == 'openmpi' else '-hosts'} {listed} -n {RANKS}"


class Job:
    """One job in a folder of its own; each start() is `backstay run --transparent` on a host."""

    program = ""  # of Python; each rank writes a file out.RANK
    numbers = itertools.count()

    def __init__(self, mini, launcher, **settings):
        self.mini, self.launcher = mini, launcher
        self.job = f"{type(self).__name__.lower()}{next(Job.numbers)}"
        self.folder = f"{SHARED}/{self.job}"
        all_settings = SETTINGS | settings
        self.environment = " ".join(f"{name}={value}" for name, value in all_settings.items())
        mini.on("n0", f"mkdir {self.folder}; cat >{self.folder}/app.py <<'END'\n{self.program}END")

    def command(self):
        """Of one rank."""
        return ["/usr/bin/python3", "app.py"]

    def run_options(self):
        return ["--interval", "0.5"]

    def start(self, options, launcher_options, on="n0"):
        self.running = self.mini.start(
            "exec", on, "--", "env", "-C", self.folder, *shlex.split(self.environment), BACKSTAY,
            "run", "--transparent", "--job", self.job, "--host-timeout", SILENT_S,
            *self.run_options(), *shlex.split(options), "--", *self.launcher,
            *shlex.split(launcher_options), *self.command())
        return self.running

    def start_in_allocation(self, options):
        """With `srun` as its launcher, in one of Slurm's allocations of two hosts."""
        run = shlex.join(["run", "--transparent", "--job", self.job, *self.run_options(),
                          *shlex.split(options), "--", *self.launcher, "-n", str(RANKS),
                          *map(str, self.command())])
        script = f"cd {self.folder} && exec env {self.environment} {BACKSTAY} {run}"
        self.running = self.mini.start("exec", "n0", "--", "salloc", "-N2", "-n4", "--overcommit",
                                       "bash", "-c", script)
        return self.running

    def run_undisturbed(self):
        """What the files hold at the end, wherever the ranks run; without Backstay."""
        words = shlex.join(map(str, self.command()))
        ranks = " ".join(map(str, range(RANKS)))
        self.mini.on("n0", f"cd {self.folder}; for rank in {ranks}; do "
                           f"PMI_RANK=$rank PMI_SIZE={RANKS} {words} & done; wait")
        outputs = self.outputs()
        assert all(f"out.{rank}" in outputs for rank in range(RANKS)), outputs
        return outputs

    def outputs(self):
        return self.mini.on("n0", f"cd {self.folder}; tail -n +1 out.* 2>/dev/null || true")

    def protected(self, host="n0"):
        """The newest version that outlives the loss of a host."""
        listed = self.mini.on(host, f"{self.environment} {BACKSTAY} ls {self.job} || true")
        found = re.findall(r"^ *(\d+) .*\bprotected\b", listed, re.MULTILINE)
        return max(map(int, found), default=0)

    def wait_for_protected(self, above=0):
        waiting.until(lambda: self.protected() > above, "a version on other hosts")


@contextlib.contextmanager
def slurm(mini):
    try:
        checks.require_tools(checks.SLURM_TOOLS)
    except MissingFeature as missing:
        pytest.skip(str(missing))
    mini("slurm", "up")
    try:
        yield
    finally:
        mini("slurm", "down")
