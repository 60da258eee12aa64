"""MPIs that a user has beside the system's own: those of scripts/mpis.txt."""

import os
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[1]
MPIS = SOURCES.parent / ".venv" / "mpi"
NAMES = ["openmpi-5.0", "mpich-5.0", "openmpi-4.1", "mpich-4.3", "intel"]
STANDARD = "mpich-5.0-abi"  # MPICH 5.0 as a library of MPI's own ABI
NUMPY = SOURCES.parent / ".venv/lib"
# Settings that let the launchers start more ranks than cores, and run as root.
SETTINGS = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "I_MPI_FABRICS": "shm"}


class Mpi:
    def __init__(self, name, world):
        self.compiler = "mpicc_abi" if name == STANDARD else "mpicc"
        self.name = name = name.removesuffix("-abi")
        self.bin = MPIS / name / "bin"
        if not (self.bin / "mpirun").exists():
            pytest.skip(f"{self.bin}/mpirun is not there: scripts/setup test installs it")
        world.env.update(SETTINGS, PATH=f"{self.bin}:{os.environ['PATH']}")
        world.env.pop("LD_LIBRARY_PATH", None)
        if name == "intel":
            world.env.update(I_MPI_ROOT=str(MPIS / name), LD_LIBRARY_PATH=str(MPIS / name / "lib"))
        self.world = world

    def line(self, ranks, *words):
        return [self.bin / "mpirun", "-n", ranks, *words]

    def built(self, source, *more):
        path = self.world.folder / Path(source).stem
        words = [self.bin / self.compiler, "-O1", "-o", path, SOURCES / source, *more]
        subprocess.run(words, check=True, env=self.world.env, timeout=100)
        return path

    def python(self):
        """The words that start Python with mpi4py of this MPI's environment, and numpy of ours."""
        own = sorted(MPIS.glob(f"{self.name}/lib/python3*/site-packages"))
        if not own or not (own[0] / "mpi4py").exists():
            pytest.skip(f"{self.name} has no mpi4py: scripts/setup test installs it")
        version = own[0].parent.name
        self.world.env["PYTHONPATH"] = ":".join(map(str, [
            SOURCES.parent / "python", own[0], NUMPY / version / "site-packages"]))
        return [self.bin / "python"]
