"""`backstay run --transparent -- mpirun -n 2 PROGRAM` with programs of Fortran and of Python: one
rank is killed, and they go on from a cut; or they go on under the other MPI.
"""

import signal
import subprocess
from pathlib import Path

import pytest
from conftest import PROGRAM
from ranks import HERE, goes_on_from_a_cut, line, wait_for_version
from transparent import nothing_is_left, program, seed, start  # noqa: F401 (some are fixtures)

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


@pytest.mark.skipif(len(HERE) < 2, reason="one MPI only")
@pytest.mark.parametrize("launcher,other,kind",
                         [("mpich", "openmpi", "mpifh"), ("openmpi", "mpich", "f08")])
def test_a_program_of_fortran_goes_on_under_the_other_mpi(world, launcher, other, kind):
    """Saved wherever it is, at the latest behind its last step, where it waits."""
    path = BUILT / f"steps.{kind}.{launcher}"
    if not path.exists():
        pytest.skip(f"{path} was not built")
    native = subprocess.run(list(map(str, line(launcher, RANKS, path, STEPS, 0))), env=world.env,
                            cwd=world.folder, stdin=subprocess.DEVNULL, capture_output=True,
                            text=True, timeout=100)
    expected = native.stdout.splitlines()
    assert native.returncode == 0 and len(expected) == STEPS, native.stderr
    words = [path, STEPS, PAUSE_MS, STEPS]
    options = ["--job", "app", "--interval", 0.1]
    with open(world.folder / "out", "w") as out:
        running = start(world, line(launcher, RANKS, *words), *options, out=out,
                        env={"STOPS": str(world.folder)})
        wait_for_version(world, running)
        running.send_signal(signal.SIGTERM)
        _, told = running.communicate(timeout=100)
        assert running.returncode == 143, told
        (world.folder / f"go.{STEPS}").touch()
        running = start(world, line(other, RANKS, *words), *options, out=out)
        _, told = running.communicate(timeout=200)
    assert running.returncode == 0 and "whose launcher has started it" in told, told
    printed = (world.folder / "out").read_text().splitlines()
    assert set(expected) <= set(printed) and printed[-1] == expected[-1], told


@pytest.mark.skipif("openmpi" not in HERE, reason="Debian's mpi4py is of Open MPI")
def test_a_program_of_mpi4py_goes_on_from_a_cut(world):
    if subprocess.run([PYTHON, "-c", "import mpi4py"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no mpi4py")
    steps = Path(__file__).resolve().parents[1] / "fortran_mpi/steps.py"
    words = line("openmpi", RANKS, PYTHON, steps, STEPS, PAUSE_MS)
    goes_on_from_a_cut(world, words, STEPS)
