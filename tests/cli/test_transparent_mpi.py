"""`backstay run --transparent -- mpirun -n 2 PROGRAM`: an unmodified program of MPI is killed, and
goes on from a cut.
"""

from pathlib import Path

import pytest
from conftest import PROGRAM
from ranks import HERE, goes_on_from_a_cut, line
from transparent import nothing_is_left, program, seed  # noqa: F401 (fixtures)

if not HERE:
    pytest.skip("no launcher is installed", allow_module_level=True)
launchers = pytest.mark.parametrize("launcher", HERE)
RANKS = 2  # waiting ranks take a core each
STEPS = 400
PAUSE_MS = 20  # so that it takes some cuts in its life, on any machine


def halo(launcher):
    path = Path(PROGRAM).resolve().parents[2] / "tests/lower_half" / f"halo.{launcher}"
    if not path.exists():
        pytest.skip(f"{path} was not built")
    return path


@launchers
@pytest.mark.parametrize("victim", ["program", "companion"])
def test_a_program_of_mpi_goes_on_from_a_cut(world, launcher, victim):
    """Killed among messages and collective calls it prints what an undisturbed run prints."""
    words = line(launcher, RANKS, halo(launcher), STEPS, PAUSE_MS)
    victims = {"program": "backstay-boot", "companion": "backstay-companion"}
    goes_on_from_a_cut(world, words, STEPS, victims[victim])
