"""`backstay run --transparent -- mpirun -n 2 PROGRAM` with programs of Fortran and of Python: one
rank is killed, and they go on from a cut.
"""

import subprocess
from pathlib import Path

import pytest
from conftest import PROGRAM
from ranks import HERE, goes_on_from_a_cut, line
from transparent import nothing_is_left, program, seed  # noqa: F401 (fixtures)

if not HERE:
    pytest.skip("no launcher is installed", allow_module_level=True)
RANKS = 2  # waiting ranks take a core each
STEPS = 60
PAUSE_MS = 30  # so that it takes some cuts in its life, on any machine
PYTHON = "/usr/bin/python3"
BUILT = Path(PROGRAM).resolve().parents[2] / "tests/fortran_mpi"
CASES = [(launcher, kind) for launcher in HERE for kind in ("mpifh", "f08")]


@pytest.mark.parametrize("launcher,kind", CASES)
def test_a_program_of_fortran_goes_on_from_a_cut(world, launcher, kind):
    path = BUILT / f"steps.{kind}.{launcher}"
    if not path.exists():
        pytest.skip(f"{path} was not built")
    goes_on_from_a_cut(world, line(launcher, RANKS, path, STEPS, PAUSE_MS), STEPS)


@pytest.mark.skipif("openmpi" not in HERE, reason="Debian's mpi4py is of Open MPI")
def test_a_program_of_mpi4py_goes_on_from_a_cut(world):
    if subprocess.run([PYTHON, "-c", "import mpi4py"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no mpi4py")
    steps = Path(__file__).resolve().parents[1] / "fortran_mpi/steps.py"
    words = line("openmpi", RANKS, PYTHON, steps, STEPS, PAUSE_MS)
    goes_on_from_a_cut(world, words, STEPS)
