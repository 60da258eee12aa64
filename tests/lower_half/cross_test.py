#!/usr/bin/env python3
"""Programs of one MPI start or go on under the launcher of the other.

Usage: cross_test.py BOOT MPIRUN FOLDER PROGRAMS MPI OTHER_MPIRUN PATTERNS [unittest arguments]
MPI is that of the programs, MPIRUN its launcher, OTHER_MPIRUN that of the other; PATTERNS is the
folder of tests/capture_cut. Standard library only.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

OTHER, PATTERNS, REST = os.path.abspath(sys.argv[6]), Path(sys.argv[7]).absolute(), sys.argv[8:]
sys.argv = sys.argv[:6]
from again_test import (  # noqa: E402
    BOOT, DEADLINE_S, FOLDER, MPI, MPIRUN, PROGRAM, PROGRAMS, REAL, ROUNDS, Lives)
from job import Job, environment  # noqa: E402

BACK = {"mpich": "Open MPI", "openmpi": "MPICH"}[MPI]
TOLD = (
    f"backstay: the program is linked with {REAL} and runs over {BACK}, "
    "whose launcher has started it"
)
# Of each kind of call some: receives from any rank, derived types, persistent requests, probes,
# collective calls that do not block, all of these; files, windows, requests of the program's own,
# buffered sends.
STEPS = 40
STARTED = {
    "patterns": ("any_source", "derived", "persistent", "probing", "nonblocking", "mixed"),
    "opened": ("duplicates", "file", "window", "own_request", "buffered"),
}
# What the standard leaves to each MPI, and is another one behind a restart: names of types that the
# program did not name, and the highest tag.
OF_ONE_MPI = re.compile(r"(?<=, )'(Dup .*|COMBINER .*|)'$|^bound \d+$")


def program(name):
    return Path(PROGRAMS) / f"{name}.{MPI}"


def lines_of(folder, ranks):
    """What each rank has said, without what is one MPI's own."""
    result = []
    for rank in range(ranks):
        lines = (folder / str(rank)).read_text().splitlines()
        result.append([OF_ONE_MPI.sub("", line) for line in lines])
    return result


class Cross(Lives):
    maxDiff = 4000
    ranks = 2

    def run_once(self, *command, **changes):
        done = subprocess.run(
            list(map(str, command)),
            env=environment(**changes),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)
        return sorted(done.stdout.splitlines()), done.stderr

    def job_of(self, mpirun, *options, **changes):
        job = Job(mpirun, self.ranks, BOOT, options, self.work, STOPS=str(self.stops), **changes)
        self.addCleanup(self.clean, job)
        return job

    def first_start(self, file, name):
        command = [PATTERNS / f"{file}.{MPI}", name, STEPS]
        said = []
        for start in ([MPIRUN, "-n", 2], [OTHER, "-n", 2, BOOT, "--mpi", FOLDER, "--"]):
            path = self.scratch / f"file.{len(said)}"
            said.append(self.run_once(*start, *command, PATTERN_FILE=str(path)))
        self.assertGreater(len(said[0][0]), 0)
        self.assertEqual(said[1][0], said[0][0])
        self.assertEqual(said[1][1].splitlines().count(TOLD), 1, said[1][1])

    def test_a_first_start_under_the_other_launcher(self):
        for file, names in STARTED.items():
            for name in names:
                with self.subTest(name):
                    self.setUp()
                    self.first_start(file, name)

    def goes_on(self, name, stop):
        """Saved under its own launcher at this stop, and brought back under the other."""
        native, ours = self.scratch / "native", self.scratch / "ours"
        image = str(self.images / "{rank}")
        for folder in (native, ours):
            folder.mkdir()
        self.run_once(MPIRUN, "-n", self.ranks, program(name), native)
        job = self.job_of(
            MPIRUN, "--image", image, "--mpi", FOLDER, "--", program(name), ours, STOP_AT=str(stop)
        )
        self.wait_for_all_at(stop, self.ranks, job)
        job.save()
        job.kill()
        job = self.job_of(OTHER, "--restore", image, "--image", image, "--mpi", FOLDER)
        self.let_go(stop)
        code, out = job.end()
        self.assertEqual((code, out.splitlines()), (0, [TOLD]))
        expected = lines_of(native, self.ranks)
        self.assertGreater(len(expected[0]), 50)
        self.assertEqual(lines_of(ours, self.ranks), expected)

    def test_handles_go_on_over_the_other_mpi(self):
        for name, stop in (("communicators", 1), ("datatypes", 9), ("handles", 5)):
            with self.subTest(name):
                self.setUp()
                self.goes_on(name, stop)

    def test_there_and_back_again(self):
        """Begun over the other MPI, brought back over its own, and over the other one once more."""
        expected = self.native(self.ranks)
        image = ["--image", str(self.images / "{rank}"), "--mpi", FOLDER]
        job = self.job_of(OTHER, *image, "--", PROGRAM, ROUNDS, 2, 4)
        for stop, launcher in ((2, MPIRUN), (4, OTHER)):
            self.wait_for_all_at(stop, self.ranks, job)
            job.save()
            job.kill()
            job = self.job_of(launcher, "--restore", image[1], *image)
            self.let_go(stop)
        self.assertEqual(job.end(), (0, TOLD + "\n"))
        self.assertEqual(self.outputs(self.work), expected)

    def test_without_the_adapter_it_is_refused_by_name(self):
        adapter = f"backstay-{MPI}-abi.so"
        with tempfile.TemporaryDirectory() as folder:
            for one in (REAL, "backstay-lower"):
                shutil.copy(Path(FOLDER) / one, folder)
            started = subprocess.run(
                [OTHER, "-n", "1", BOOT, "--mpi", folder, "--", program("calls")],
                env=environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=DEADLINE_S,
            )
            self.assertNotEqual(started.returncode, 0)
            self.assertIn(
                f"the program uses {REAL}, this process was started by the launcher of another "
                f"MPI, and {folder}/{adapter} is missing",
                started.stderr,
            )


del Lives  # it has no tests of its own
if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *REST])
