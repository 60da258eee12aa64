#!/usr/bin/env python3
"""Handles are renewed in a running MPI, and behind restarts; programs see nothing of it.

Usage: handles_test.py BOOT MPIRUN FOLDER PROGRAMS MPI [unittest arguments]
FOLDER holds backstay-lower and the libraries that renew at a program's wish (renewing.cc). The seed
of the random programs is printed; BACKSTAY_SEED takes it back. Standard library only.
"""

import os
import re
import sys
import tempfile
import unittest
from pathlib import Path

REST = sys.argv[6:]
sys.argv = sys.argv[:6]
from again_test import Lives  # noqa: E402
from lower_half_test import BOOT, FOLDER, MPIRUN, program, run  # noqa: E402

RANKS = (1, 2, 4, 6) if os.environ.get("BACKSTAY_SOAK") == "1" else (2, 4)
RANDOM_PROGRAMS = 1
# Ranks that wait keep their core busy, so a collective call of many on few cores takes long.
STEPS = {1: 1500, 2: 500, 4: 150, 6: 80}


def seed():
    given = os.environ.get("BACKSTAY_SEED")
    return int(given) if given else int.from_bytes(os.urandom(3), "little")


class Handles(unittest.TestCase):
    maxDiff = 4000

    def lines(self, ranks, *command, **changes):
        """What each rank has said."""
        with tempfile.TemporaryDirectory() as folder:
            command = [one if one != "FOLDER" else folder for one in command]
            code, out, error = run([MPIRUN, "-n", ranks, *command], **changes)
            said = [(Path(folder) / str(rank)).read_text().splitlines() for rank in range(ranks)]
        self.assertEqual(code, 0, out[-2000:] + error)
        return said

    def ours(self, ranks, *command, **changes):
        return self.lines(ranks, BOOT, "--mpi", FOLDER, "--", *command, **changes)

    def same(self, name, least, *arguments, all_ranks=RANKS):
        for ranks in all_ranks:
            with self.subTest(ranks=ranks):
                native = self.lines(ranks, program(name), "FOLDER", *arguments)
                self.assertGreater(len(native[0]), least)
                self.assertEqual(self.ours(ranks, program(name), "FOLDER", *arguments), native)

    def test_communicators_and_groups(self):
        self.same("communicators", 200)

    def test_datatypes(self):
        self.same("datatypes", 200, all_ranks=(1, 4))

    def test_operations_info_error_handlers_attributes(self):
        self.same("handles", 60, all_ranks=(1, 2, 4))

    def test_all_of_them_were_renewed(self):
        for name, least in (("communicators", 3), ("datatypes", 20), ("handles", 8)):
            for said in self.ours(2, program(name), "FOLDER", "count"):
                self.assertGreaterEqual(int(re.match(r"(\d+) renewals", said[-1])[1]), least)

    def test_random_programs(self):
        first = seed()
        for number in range(RANDOM_PROGRAMS):
            for ranks in RANKS:
                with self.subTest(BACKSTAY_SEED=first + number, ranks=ranks):
                    command = [program("renewals"), "FOLDER", first + number, STEPS[ranks]]
                    native = self.lines(ranks, *command)
                    self.assertGreater(len(native[0]), 0)
                    self.assertEqual(self.ours(ranks, *command), native)


class BehindARestart(Lives):
    """The same programs, saved and brought back with another MPI at one of those points."""

    def lives_once(self, name, ranks, stop, *arguments):
        folders = self.scratch / f"native.{name}", self.scratch / f"ours.{name}"
        for folder in folders:
            folder.mkdir()
        run([MPIRUN, "-n", ranks, program(name), folders[0], *arguments])
        options = ["--image", self.images / "{rank}", "--mpi", FOLDER, "--"]
        job = self.job(
            ranks, [*options, program(name), folders[1], *arguments], self.work, STOP_AT=str(stop)
        )
        self.wait_for_all_at(stop, ranks, job)
        job.save()
        job.kill()
        job = self.restart(ranks)
        self.let_go(stop)
        self.assertEqual(job.end(), (0, ""))
        native, ours = (
            [(folder / str(rank)).read_text().splitlines() for rank in range(ranks)]
            for folder in folders
        )
        self.assertGreater(len(native[0]), 10)
        self.assertEqual(ours, native)

    def test_communicators_and_groups(self):
        for stop in (1, 3):
            with self.subTest(stop=stop):
                self.setUp()
                self.lives_once("communicators", 4, stop)

    def test_datatypes(self):
        for stop in (1, 9):
            with self.subTest(stop=stop):
                self.setUp()
                self.lives_once("datatypes", 2, stop)

    def test_operations_info_error_handlers_attributes(self):
        for stop in (2, 5, 8):
            with self.subTest(stop=stop):
                self.setUp()
                self.lives_once("handles", 2, stop)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *REST])
