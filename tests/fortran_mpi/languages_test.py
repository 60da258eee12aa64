#!/usr/bin/env python3
"""Programs of Fortran and Python are cut at random moments, and their output stays what it is.

Usage: languages_test.py BOOT MPIRUN FOLDER PROGRAMS MPI [unittest arguments]
PROGRAMS holds the programs of Fortran, named PROGRAM.KIND.MPI; BACKSTAY_CUT_JOB is capture_cut's
program of that name. BACKSTAY_SEED replays. Standard library only.
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "capture_cut"))
import cut_test  # noqa: E402
from cut_test import BOOT, FOLDER, MPI, MPIRUN, PROGRAMS, SEED  # noqa: E402

PYTHON = "/usr/bin/python3"
FORTRAN = ("mpifh", "module", "f08")
STEPS, PAUSE_MS = 50, 10
# Debian's mpi4py is of Open MPI.
HAS_MPI4PY = MPI == "openmpi" and not subprocess.run(
    [PYTHON, "-c", "import mpi4py"], stderr=subprocess.DEVNULL
).returncode


class Languages(cut_test.Cutting):
    @unittest.skipUnless(HAS_MPI4PY, "no mpi4py of this MPI")
    def test_python(self):
        program = [PYTHON, HERE / "steps.py", STEPS, PAUSE_MS]
        Languages.saved += self.cut(2, "python", program, SEED)

    def test_many_functions_give_what_they_give_natively(self):
        for kind in FORTRAN:
            with self.subTest(kind), tempfile.TemporaryDirectory() as folder:
                program = [Path(PROGRAMS) / f"functions.{kind}.{MPI}", Path(folder) / "file"]
                native, _ = self.native([MPIRUN, "-n", 2, *program])
                ours, _ = self.native([MPIRUN, "-n", 2, BOOT, "--mpi", FOLDER, "--", *program])
                self.assertEqual((len(native), ours), (2, native))

    def test_what_cannot_be_saved_and_that_nothing_is_looked_up_in_vain(self):
        """All that the stock libraries take from MPI's is there: ld.so looks at the start."""
        for kind in FORTRAN:
            program = [Path(PROGRAMS) / f"steps.{kind}.{MPI}", 2, 0]
            words = [MPIRUN, "-n", 2, "env", "LD_BIND_NOW=1", BOOT, "--mpi", FOLDER, "--", *program]
            code, out, error = cut_test.run(words)
            self.assertEqual(code, 0, error)
            self.assertEqual(len(out), 2, error)


for kind in FORTRAN:
    words = [Path(PROGRAMS) / f"steps.{kind}.{MPI}", STEPS, PAUSE_MS]
    setattr(Languages, f"test_{kind}", cut_test.test_of(Languages, kind, words, 0))


if __name__ == "__main__":
    print(f"BACKSTAY_SEED={SEED}", flush=True)
    unittest.main(argv=[sys.argv[0], *sys.argv[6:]])
