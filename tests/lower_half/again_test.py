#!/usr/bin/env python3
"""MPI programs are saved, killed and brought back with another lower half.

Usage: again_test.py BOOT MPIRUN FOLDER PROGRAMS MPI [unittest arguments]
All ranks are outside of MPI when they are saved, and nothing is under way. Their output is that of
an undisturbed run. Standard library only.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from job import DEADLINE_S, Job, Refused, environment

BOOT, MPIRUN, FOLDER, PROGRAMS, MPI = *map(os.path.abspath, sys.argv[1:5]), sys.argv[5]
REAL = {"mpich": "libmpich.so.12", "openmpi": "libmpi.so.40"}[MPI]
PROGRAM = Path(PROGRAMS) / f"again.{MPI}"
ROUNDS = 6


class Lives(unittest.TestCase):
    """What the tests share."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scratch = Path(folder.name)
        self.stops = self.scratch / "stops"
        self.stops.mkdir()
        self.images = self.scratch / "images"
        self.images.mkdir()
        self.work = self.scratch / "work"
        self.work.mkdir()

    def native(self, ranks, **changes):
        folder = self.scratch / "native"
        folder.mkdir()
        subprocess.run(
            [MPIRUN, "-n", str(ranks), PROGRAM, str(ROUNDS)],
            cwd=folder,
            env=environment(**changes),
            stdin=subprocess.DEVNULL,
            check=True,
            timeout=DEADLINE_S,
        )
        return self.outputs(folder)

    @staticmethod
    def outputs(folder):
        return {path.name: path.read_text() for path in sorted(folder.glob("out.*"))}

    def start(self, ranks, stops, **changes):
        options = ["--image", self.images / "{rank}", "--mpi", FOLDER, "--", PROGRAM, ROUNDS]
        return self.job(ranks, [*options, *stops], self.work, **changes)

    def restart(self, ranks, cwd="/", **changes):
        image = self.images / "{rank}"
        options = ["--restore", image, "--image", image, "--mpi", FOLDER]
        return self.job(ranks, options, cwd, **changes)

    def job(self, ranks, options, cwd, **changes):
        job = Job(MPIRUN, ranks, BOOT, options, cwd, STOPS=str(self.stops), **changes)
        self.addCleanup(self.clean, job)
        return job

    @staticmethod
    def clean(job):
        if job.process.poll() is None:
            os.killpg(job.process.pid, signal.SIGKILL)
            job.process.wait()
        job.process.stdout.close()

    def wait_for_all_at(self, stop, ranks, job):
        for rank in range(ranks):
            self.wait_for(self.stops / f"at.{rank}.{stop}", job)

    def wait_for(self, file, job):
        end = time.monotonic() + DEADLINE_S
        while not file.exists():
            self.assertLess(time.monotonic(), end, f"{file.name} does not come")
            if job.process.poll() is not None:
                self.fail(f"the job has ended: {job.end()}")
            time.sleep(0.005)  # a poll with a deadline

    def let_go(self, stop):
        (self.stops / f"go.{stop}").touch()

    def lives(self, ranks, stops, **changes):
        """Saved, killed and brought back at each stop."""
        native = self.native(ranks, **changes)
        job = self.start(ranks, stops, **changes)
        for stop in stops:
            self.wait_for_all_at(stop, ranks, job)
            saved = job.save()
            self.assertEqual(len(saved), ranks)
            job.kill()
            job = self.restart(ranks)
            self.let_go(stop)
        code, out = job.end()
        self.assertEqual((code, out), (0, ""))
        self.assertEqual(self.outputs(self.work), native)

    def saved(self, ranks=1):
        """Images at stop 2. Nobody lives."""
        job = self.start(ranks, [2])
        self.wait_for_all_at(2, ranks, job)
        job.save()
        job.kill()
        return self.outputs(self.work)


class Again(Lives):
    def test_one_restart(self):
        for ranks in (1, 2, 4):
            with self.subTest(ranks=ranks):
                self.setUp()
                self.lives(ranks, [3])

    def test_several_restarts(self):
        self.lives(2, [2, 3, 5])

    def test_descriptors_at_numbers_that_mpi_takes(self):
        self.lives(2, [2, 4], OWN="1")

    def test_before_and_behind_mpi(self):
        self.lives(2, [0, 1, ROUNDS + 1, ROUNDS + 2])

    def test_a_program_that_a_shell_has_become(self):
        """The launcher's descriptors are not the program's, behind exec too."""
        native = self.native(2)
        shell = ["/bin/sh", "-c", 'true; exec "$@"', "sh", PROGRAM, ROUNDS, 3]
        job = self.job(
            2, ["--image", self.images / "{rank}", "--mpi", FOLDER, "--", *shell], self.work
        )
        self.wait_for_all_at(3, 2, job)
        job.save()
        job.kill()
        job = self.restart(2)
        self.let_go(3)
        self.assertEqual(job.end(), (0, ""))
        self.assertEqual(self.outputs(self.work), native)

    def test_a_program_that_opens_mpi_behind_a_restart(self):
        """Its own environment is that of the launcher that has ended."""
        script = (
            "import ctypes, os, time\nrank = os.environ.get('PMI_RANK') or "
            "os.environ['OMPI_COMM_WORLD_RANK']\nfolder = os.environ['STOPS']\n"
            "open(folder + '/at.' + rank + '.1', 'w').close()\n"
            "while not os.path.exists(folder + '/go.1'): time.sleep(0.001)\n"
            f"mpi = ctypes.CDLL('{REAL}', ctypes.RTLD_GLOBAL)\n"
            "os.write(1, b'began %d\\n' % mpi.MPI_Init(None, None))\nmpi.MPI_Finalize()"
        )
        command = ["--mpi", FOLDER, "--", "/usr/bin/python3", "-c", script]
        job = self.job(2, ["--image", self.images / "{rank}", *command], self.work)
        self.wait_for_all_at(1, 2, job)
        job.save()
        job.kill()
        job = self.restart(2)
        self.let_go(1)
        self.assertEqual(job.end(), (0, "began 0\n" * 2))

    def test_threads_that_mpi_starts_late(self):
        go = self.stops / "go"
        lazy = [PROGRAM.with_name(f"lazy.{MPI}"), go]
        job = self.job(
            1, ["--image", self.images / "{rank}", "--mpi", FOLDER, "--", *lazy], self.work
        )
        self.wait_for(self.stops / "go.0", job)
        job.save()
        job.kill()
        job = self.restart(1)
        go.touch()
        self.assertEqual(job.end(), (0, "right\n"))

    def test_handlers_and_timers_go_on(self):
        signals, go = PROGRAM.with_name(f"signals.{MPI}"), self.stops / "go"
        options = ["--image", self.images / "{rank}", "--mpi", FOLDER, "--", signals, 100, go]
        job = self.job(2, options, self.work)
        for _ in range(2):
            for rank in range(2):
                self.wait_for(self.stops / f"go.{rank}", job)
            job.save()
            job.kill()
            job = self.restart(2)
        go.touch()
        self.assertEqual(job.end(), (0, "right\n" * 2))

    def test_saved_and_not_killed(self):
        native = self.native(2)
        job = self.start(2, [2, 4])
        for stop in (2, 4):
            self.wait_for_all_at(stop, 2, job)
            job.save()
            self.let_go(stop)
        self.assertEqual(job.end(), (0, ""))
        self.assertEqual(self.outputs(self.work), native)

    def test_a_program_that_blocks_in_mpi_is_refused_and_goes_on(self):
        native = self.native(2)
        job = self.start(2, [3], ONLY="1")
        self.wait_for(self.stops / "at.1.3", job)
        job.lines[0].ask()
        with self.assertRaises(Refused) as refused:  # rank 0 waits for rank 1, or is about to
            while job.lines[0].answer():
                job.lines[0].ask()
        self.assertEqual(
            str(refused.exception),
            f"the program has been in a call of MPI ({REAL}) for 2 s: "
            "it can be saved between two calls",
        )
        self.let_go(3)
        self.assertEqual(job.end(), (0, ""))
        self.assertEqual(self.outputs(self.work), native)


class Refusals(Lives):
    def refused(self, words, *options, code=78, **changes):
        done = subprocess.run(
            [BOOT, "--restore", self.images / "0", *options],
            env=environment(**changes),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertTrue(done.stderr.startswith("backstay: cannot restart: "), done.stderr)
        self.assertIn(words, done.stderr)

    def test_refused_by_name_before_anything_is_lost(self):
        written = self.saved()
        with open(self.work / "out.0", "a") as out:
            out.write("behind the cut\n")
        words = f"this program uses MPI ({REAL}), and no folder was given by --mpi"
        self.refused(words)
        with tempfile.TemporaryDirectory() as folder:
            self.refused(f"{folder}/{REAL} is missing", "--mpi", folder)
            shutil.copy(Path(FOLDER) / REAL, folder)
            self.refused(f"{folder}/backstay-lower: not found", "--mpi", folder)
        hydra = {"PMI_FD": "17", "MPI_LOCALNRANKS": "1"}
        launcher = {"OMPI_COMM_WORLD_SIZE": "1"} if MPI == "mpich" else hydra
        with tempfile.TemporaryDirectory() as folder:
            for one in (REAL, "backstay-lower"):
                shutil.copy(Path(FOLDER) / one, folder)
            self.refused("by the launcher of another MPI, and", "--mpi", folder, **launcher)
        self.assertEqual(
            (self.work / "out.0").read_text(), written["out.0"] + "behind the cut\n"
        )
        job = self.restart(1)
        self.let_go(2)
        self.assertEqual(job.end(), (0, ""))
        self.assertEqual(self.outputs(self.work), self.native(1))

    def test_another_number_of_ranks(self):
        self.saved(2)
        self.let_go(2)
        code, out = self.restart(1).end()
        self.assertNotEqual(code, 0)
        self.assertIn("rank 0 of 2 was saved, and MPI has started this process as rank 0 of 1", out)


class Killed(Lives):
    def kill_at(self, job, delay_s):
        time.sleep(delay_s)  # a moment; nothing is waited for
        job.kill()

    def test_killed_while_it_is_saved(self):
        native = self.native(2)
        job = self.start(2, [2, 4])
        self.wait_for_all_at(2, 2, job)
        job.save()
        first = [self.images.joinpath(str(rank)).read_bytes() for rank in range(2)]
        self.let_go(2)
        self.wait_for_all_at(4, 2, job)
        for line in job.lines:
            line.ask()
        self.kill_at(job, random.uniform(0, 0.02))
        self.let_go(4)
        # Each rank has one of both images, and only those of one cut go together.
        now = [self.images.joinpath(str(rank)).read_bytes() for rank in range(2)]
        if (now[0] == first[0]) != (now[1] == first[1]):
            for rank in range(2):
                self.images.joinpath(str(rank)).write_bytes(first[rank])
        self.assertEqual(self.restart(2).end(), (0, ""))
        self.assertEqual(self.outputs(self.work), native)

    def test_killed_while_it_is_brought_back(self):
        native = self.native(2)
        self.saved(2)
        for _ in range(4):
            self.kill_at(self.restart(2), random.uniform(0, 0.15))
        self.let_go(2)
        self.assertEqual(self.restart(2).end(), (0, ""))
        self.assertEqual(self.outputs(self.work), native)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[6:]])
