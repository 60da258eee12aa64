#!/usr/bin/env python3
"""The tables of the source agree with the MPI that is installed.

Usage: tables_test.py FOLDER MPI LIBRARY INCLUDE_DIRS
LIBRARY is the real one, by any link; INCLUDE_DIRS is CMake's list. It needs nm.
"""

import subprocess
import sys
import unittest
from pathlib import Path

FOLDER, MPI, LIBRARY, INCLUDE_DIRS = sys.argv[1:5]
ROOT = Path(__file__).resolve().parents[2]
REAL = {"mpich": "libmpich.so.12", "openmpi": "libmpi.so.40"}[MPI]
# Fortran's, and C functions with large counts (MPI 4.0, MPICH alone): docs/protocol/lower-half.md.
MISSING = {
    "MPI_AINT_ADD_F90",
    "MPI_AINT_DIFF_F90",
    "MPI_CONVERSION_FN_NULL",
    "MPI_WTICK_F90",
    "MPI_WTIME_F90",
}
MISSING_ENDS = ("_FN", "STATUS_IGNORE", "STATUSES_IGNORE") + (("_c",) if MPI == "openmpi" else ())


def exported(library):
    command = ["nm", "-D", "--defined-only", str(library)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines()}


class Tables(unittest.TestCase):
    def test_every_function_is_there_under_both_names(self):
        real = exported(Path(LIBRARY).resolve())
        ours = exported(Path(FOLDER) / REAL)
        named = {name for name in real if name.removeprefix("P").startswith("MPI_")}
        self.assertGreater(len(named), 800)
        missing = {
            name
            for name in named - ours
            if name.removeprefix("P") not in MISSING and not name.endswith(MISSING_ENDS)
        }
        self.assertEqual(missing, set())

    @unittest.skipUnless(MPI == "openmpi", "MPICH's handles are numbers")
    def test_the_objects_of_the_handles(self):
        headers = [Path(folder) / "mpi.h" for folder in INCLUDE_DIRS.split(";")]
        header = next(path for path in headers if path.is_file())
        command = [str(ROOT / "scripts/mpi_objects"), str(header), str(Path(LIBRARY).resolve())]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        table = ROOT / "src/capture/mpi_library/openmpi_objects.txt"
        self.assertEqual(out, table.read_text())
        names = {line.split()[1] for line in out.splitlines() if not line.startswith("#")}
        self.assertLessEqual(names, exported(Path(FOLDER) / REAL))

    def test_the_prototypes_are_those_of_the_standard(self):
        try:
            import pympistandard  # noqa: F401
        except ImportError:
            self.skipTest("it needs pympistandard")
        command = [sys.executable, str(ROOT / "scripts/mpi_prototypes")]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        self.assertEqual(out, (ROOT / "src/capture/lower/functions.txt").read_text())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
