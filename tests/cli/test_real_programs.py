"""Unmodified MPI programs, killed at random moments: each writes what an undisturbed run writes.

Into a file: what it prints goes through a launcher, which may lose the last of it when it dies.
Larger programs, in `make soak`: test_transparent_real.py.

BACKSTAY_SEED repeats a run; BACKSTAY_LIVES says how often each program is killed (`make soak`: 30).
"""

import re
import shutil
from pathlib import Path

import pytest
from conftest import PROGRAM
from killed import RANKS, kill_and_compare
from ranks import HERE, line
from transparent import LIVES, nothing_is_left, seed  # noqa: F401 (some are fixtures)

if not HERE:
    pytest.skip("no launcher is installed", allow_module_level=True)
# Steps at least, and ranks. Waiting ranks take a core each, so some have fewer where the kills are
# few.
KERNELS = {
    "wavefront": (300, RANKS),
    "multigrid": (150, RANKS),
    "alternating": (60, 4),
    "transposes": (60, 4),
}
MANY_KILLS = 10
FEW_KILLS = {"wavefront": "openmpi", "multigrid": "mpich", "alternating": "mpich",
             "transposes": "openmpi"}
# Of LAMMPS: what tells of time, memory or how the work was shared.
NOT_COMPARED = re.compile(r"Loop time|Performance:|Total wall time|.*% CPU use|Per MPI rank memory|"
                          r"\w+ +\|| +\w+ CPU = ")

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


def lines_of(path, is_compared=lambda text: True):
    """Those of a file that the program has written, without it."""
    def results():
        lines = path.read_text().splitlines()
        path.unlink()
        assert len(lines) > 40, lines
        return [text for text in lines if is_compared(text)]

    return results


@pytest.mark.parametrize("launcher", HERE)
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel(world, launcher, kernel):
    folder = Path(PROGRAM).resolve().parents[2] / "tests/real_programs"
    program = folder / f"{kernel}.{launcher}"
    if not program.exists():
        pytest.skip(f"{program} was not built")
    if LIVES < MANY_KILLS and len(HERE) == 2 and launcher != FEW_KILLS[kernel]:
        pytest.skip("under the other launcher; under both in `make soak`")
    steps, ranks = KERNELS[kernel]
    words = line(launcher, 4 if LIVES >= MANY_KILLS else ranks, program, "sums", steps)
    kill_and_compare(world, words, lines_of(world.folder / "sums"), grows=-1)


def test_lammps(world):
    """Its log is a file, which a restart cuts back: it has no line twice."""
    if shutil.which("lmp") is None or "openmpi" not in HERE:
        pytest.skip("LAMMPS (lmp, Debian's package lammps) or Open MPI's launcher is not installed")
    (world.folder / "in").write_text(LJ)
    words = line("openmpi", RANKS, "lmp", "-in", "in", "-screen", "none")
    compared = lines_of(world.folder / "log.lammps", lambda text: not NOT_COMPARED.match(text))
    kill_and_compare(world, words, compared)
