"""Unmodified MPI programs, killed at random moments: each writes what an undisturbed run writes.

Into a file: what it prints goes through a launcher, which may lose the last of it when it dies.
Larger programs, of which only ranks are killed: test_transparent_real.py.

BACKSTAY_SEED repeats a run; BACKSTAY_LIVES says how often each program is killed (`make soak`: 30).
"""

import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import PROGRAM
from processes import wait_for
from ranks import HERE, line, newest
from transparent import (  # noqa: F401 (two are fixtures)
    LIVES, nothing_is_left, processes_of, seed, start)

if not HERE:
    pytest.skip("no launcher is installed", allow_module_level=True)
RANKS = 2  # waiting ranks take a core each
KERNELS = {"wavefront": 300, "multigrid": 150}  # steps
# Of LAMMPS: what tells of time, memory or how the work was shared.
NOT_COMPARED = re.compile(r"Loop time|Performance:|Total wall time|.*% CPU use|Per MPI rank memory|"
                          r"\w+ +\|| +\w+ CPU = ")
# A rank, what saves it, the launcher. All end the job; a restart brings all ranks back.
VICTIMS = ["backstay-boot", "backstay-boot", "backstay-companion", "orterun", "mpiexec.hydra"]

LJ = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 12 0 12 0 12
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
thermo 10
thermo_modify format float %20.15g
run 800
"""


def kill_one(world):
    """One process of the job, of those that are there now."""
    candidates = [pid for name in VICTIMS for pid in processes_of(world, name)]
    if not candidates:
        return False
    try:
        os.kill(random.choice(candidates), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def run_with_kills(world, words, kills, out):
    """(how many kills, what `backstay run` said) of one job."""
    killed, seen = 0, newest(world)  # of an earlier run of the test
    with open(out, "wb") as file:
        running = start(world, words, "--job", "app", "--fresh", "--interval", 0.1, "--retries",
                        3 * kills, out=file)
        while killed < kills:
            wait_for(lambda: running.poll() is not None or newest(world) > seen, "a new version")
            time.sleep(random.uniform(0, 0.3))  # a random moment; nothing is waited for
            if running.poll() is not None:
                break
            seen = newest(world)  # two lives without a version are a crash loop
            killed += kill_one(world)
        _, told = running.communicate(timeout=60 + 10 * kills)
    assert running.returncode == 0, told
    return killed, told


def kill_and_compare(world, words, file, is_compared=lambda text: True):
    """The lines of `file` are those of an undisturbed run."""
    file = world.folder / file

    def result():
        lines = file.read_text().splitlines()
        file.unlink()
        return [text for text in lines if is_compared(text)]

    words = list(map(str, words))
    done = subprocess.run(words, env=world.env, cwd=world.folder, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    expected = result()
    killed = 0
    for _ in range(2 + LIVES):  # a program may end before its last kill
        more, told = run_with_kills(world, words, LIVES - killed, world.folder / "out")
        assert len(expected) > 40 and result() == expected, told
        killed += more
        if killed >= LIVES:
            return
    raise AssertionError(f"{killed} of {LIVES} kills met a running program")


@pytest.mark.parametrize("launcher", HERE)
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel(world, launcher, kernel):
    folder = Path(PROGRAM).resolve().parents[2] / "tests/real_programs"
    program = folder / f"{kernel}.{launcher}"
    if not program.exists():
        pytest.skip(f"{program} was not built")
    words = line(launcher, RANKS, program, "sums", KERNELS[kernel])
    kill_and_compare(world, words, "sums")


def test_lammps(world):
    """Its log is a file, which a restart cuts back: it has no line twice."""
    if shutil.which("lmp") is None or "openmpi" not in HERE:
        pytest.skip("LAMMPS (lmp, Debian's package lammps) or Open MPI's launcher is not installed")
    (world.folder / "in").write_text(LJ)

    words = line("openmpi", RANKS, "lmp", "-in", "in", "-screen", "none")
    kill_and_compare(world, words, "log.lammps", lambda text: not NOT_COMPARED.match(text))
