#!/usr/bin/env python3
"""Programs of Fortran that are linked with one MPI start or go on under the launcher of the other.

Usage: cross_test.py BOOT MPIRUN FOLDER PROGRAMS MPI OTHER_MPIRUN [unittest arguments]
MPI is that of the programs, MPIRUN its launcher, OTHER_MPIRUN that of the other. Standard library
only.
"""

import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lower_half"))
OTHER, REST = str(Path(sys.argv[6]).absolute()), sys.argv[7:]
sys.argv = sys.argv[:6]
from again_test import BOOT, DEADLINE_S, FOLDER, MPI, MPIRUN, PROGRAMS, REAL, Lives  # noqa: E402
from job import Job, environment  # noqa: E402

FORTRAN = ("mpifh", "module", "f08")
STEPS, STOP = 6, 3
RANKS = 2


class Cross(Lives):
    natives = {}  # what each program says without Backstay

    def program(self, name, kind):
        return Path(PROGRAMS) / f"{name}.{kind}.{MPI}"

    def run_once(self, *command):
        done = subprocess.run(
            list(map(str, command)),
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)
        return sorted(done.stdout.splitlines())

    def native(self, name, kind, *words):
        key = (name, kind)
        if key not in self.natives:
            self.natives[key] = self.run_once(MPIRUN, "-n", RANKS, self.program(*key), *words)
            self.assertGreater(len(self.natives[key]), 0)
        return self.natives[key]

    def job_under(self, launcher, *options):
        job = Job(launcher, RANKS, BOOT, options, self.work, STOPS=str(self.stops))
        self.addCleanup(self.clean, job)
        return job

    def moves(self, command, stop, first, then):
        """Saved at this stop under the first launcher, it comes to its end under the other one."""
        image = str(self.images / "{rank}")
        options = ["--image", image, "--mpi", FOLDER]
        job = self.job_under(first, *options, "--", *command)
        self.wait_for_all_at(stop, RANKS, job)
        job.save()
        job.kill()
        job = self.job_under(then, "--restore", image, *options)
        self.let_go(stop)
        code, out = job.end()
        self.assertEqual(code, 0, out)
        told = f"backstay: the program is linked with {REAL} and runs over "
        lines = [line for line in out.splitlines() if not line.startswith("[WARNING] yaksa")]
        crossed = [line for line in lines if line.startswith(told)]
        self.assertEqual(len(crossed), 0 if then == MPIRUN else 1, out)
        return sorted(line for line in lines if line not in crossed)


def test_of_starts(kind):
    def test(self):
        """The same checksums, and the same functions give what is right."""
        start = [OTHER, "-n", RANKS, BOOT, "--mpi", FOLDER, "--"]
        for name, words in (("steps", [STEPS, 0]), ("functions", [self.scratch / "file"])):
            said = self.run_once(*start, self.program(name, kind), *words)
            self.assertEqual(said, self.native(name, kind, *words))

    return test


def test_of_steps(kind):
    def test(self):
        words = [STEPS, 0]
        command = [self.program("steps", kind), *words, STOP]
        expected = [line for line in self.native("steps", kind, *words) if step_of(line) > STOP]
        self.assertEqual(self.moves(command, STOP, MPIRUN, OTHER), expected)

    return test


def test_of_functions(kind):
    def test(self):
        """What it has made before is used behind the restart."""
        for first, then in ((MPIRUN, OTHER), (OTHER, MPIRUN)):
            with self.subTest(first=first):
                self.setUp()
                file = self.scratch / "file"
                command = [self.program("functions", kind), file, 1]
                expected = self.native("functions", kind, file)
                self.assertEqual(self.moves(command, 1, first, then), expected)

    return test


def step_of(line):
    return int(line.split()[1].rstrip(":"))


for kind in FORTRAN:
    setattr(Cross, f"test_{kind}_starts_over_the_other_mpi", test_of_starts(kind))
    setattr(Cross, f"test_{kind}_goes_on_over_the_other_mpi", test_of_steps(kind))
    setattr(Cross, f"test_{kind}_has_its_objects_over_the_other_mpi", test_of_functions(kind))
del Lives  # it has no tests of its own
if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *REST])
