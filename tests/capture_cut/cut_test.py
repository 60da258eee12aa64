#!/usr/bin/env python3
"""Unmodified MPI programs are cut at random moments, and their output stays what it is.

Usage: cut_test.py BOOT MPIRUN FOLDER PROGRAMS MPI [unittest arguments]
FOLDER holds backstay-lower and our libraries; PROGRAMS the programs, named program.MPI, and
cut_job, which plays agents and checks each cut. BACKSTAY_SEED replays. Standard library only.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

BOOT, MPIRUN, FOLDER, PROGRAMS, MPI = sys.argv[1:6]
CUT_JOB = os.environ.get("BACKSTAY_CUT_JOB", Path(PROGRAMS) / "cut_job")
SEED = int(os.environ.get("BACKSTAY_SEED", time.time_ns() % 1_000_000))
SOAK = os.environ.get("BACKSTAY_SOAK") == "1"
CUTS = int(os.environ.get("BACKSTAY_CUTS", "30" if SOAK else "8"))
RANKS = (2, 3, 4) if SOAK else (2,)  # waiting ranks take a core each
DEADLINE_S = 120
TRIES = 4
LONG_S = 2 if SOAK else 0.4  # so long that the cuts fit in
# Of a slow machine; on others a program gets more (`native`).
STEPS = {
    "halo": 300,
    "edges": 1200,
    "ring": 1200,
    "wavefront": 300,
    "exchange": 300,
    "any_source": 1200,
    "master": 300,
    "synchronous": 800,
    "derived": 1200,
    "persistent": 800,
    "probing": 800,
    "polling": 300,
    "transpose": 800,
    "rows": 200,
    "nonblocking": 600,
    "mixed": 1000,
}
OPENED = {
    "duplicates": 10000,
    "file": 10000,
    "window": 10000,
    "own_request": 4000,
    "buffered": 4000,
}
GROUPS = {
    "pairs": 600,
    "all_but_one": 600,
    "sides": 600,
    "merges": 300,
}
THREADS = {
    "turns": 300,
    "talking": 20,
    "itself": 20,
    "matched": 50,
    "dividing": 4,
    "adding": 20,
    "grouping": 4,
}
PROGRAMS_OF = {"patterns": STEPS, "opened": OPENED, "groups": GROUPS, "threads": THREADS}


def run(command):
    """(code, sorted lines of standard output, standard error); the process group ends with it."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("BACKSTAY_")}
    process = subprocess.Popen(
        list(map(str, command)),
        env={
            **kept,
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, error = process.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, error = process.communicate()
        raise AssertionError(f"{command} does not end:\n{out[-2000:]}\n{error}") from None
    return process.returncode, sorted(out.splitlines()), error


class Cutting(unittest.TestCase):
    """What tests of one kind of programs share."""

    # Of all programs: a quick one may end before its first cut.
    saved = 0

    @classmethod
    def tearDownClass(cls):
        assert len(sys.argv) > 6 or cls.saved > CUTS, f"only {cls.saved} cuts were saved"

    def native(self, command):
        began = time.monotonic()
        done = run(command)
        self.assertEqual(done[0], 0, done)
        return done[1], time.monotonic() - began

    def cut(self, ranks, name, program, seed, grows=False):
        """`grows`: its last word is a number of steps, which may be more."""
        launcher = [MPIRUN, "-n", ranks]
        job = CUT_JOB
        with tempfile.TemporaryDirectory() as folder:
            os.environ["PATTERN_FILE"] = str(Path(folder) / "file")
            native, took_s = self.native([*launcher, *program])
            while grows and took_s < LONG_S:
                program = [*program[:-1], program[-1] * 4]
                native, took_s = self.native([*launcher, *program])
            socket = Path(folder) / "lead"
            rank = [job, "rank", socket, BOOT, FOLDER, "--"]
            lead = [job, "lead", socket, ranks, CUTS, seed, "--"]
            began = time.monotonic()
            code, out, error = run([*lead, *launcher, *rank, *program])
        print(f"{name} -n {ranks}, seed {seed}: {time.monotonic() - began:.1f} s\n{error}", end="")
        self.assertEqual(code, 0, error)
        self.assertEqual(out, native, error)
        saved = re.search(r"cuts: (\d+) saved", error)
        self.assertIsNotNone(saved, error)
        return int(saved[1])


    def cut_often(self, ranks, name, program, least, grows):
        saved = 0
        for _ in range(TRIES):  # on a busy machine a program may end before it is cut
            saved = self.cut(ranks, name, program, SEED + ranks, grows)
            if saved >= least or not grows:
                break
            program = [*program[:-1], program[-1] * 4]
        return saved


class Cuts(Cutting):
    def test_who_waits_in_a_cut_sleeps(self):
        """Where it gives the processor away by turns alone, a busy machine gives it none when it
        may go on.
        """
        with tempfile.TemporaryDirectory() as folder:
            socket = Path(folder) / "lead"
            rank = [CUT_JOB, "rank", socket, BOOT, FOLDER, "--"]
            program = [Path(PROGRAMS) / f"held.{MPI}", 8, 600]
            code, _, error = run([CUT_JOB, "lead", socket, 4, 100, SEED, "--",
                                  MPIRUN, "-n", 4, *rank, *program])
        self.assertEqual(code, 0, error)
        saved = int(re.search(r"cuts: (\d+) saved", error)[1])
        self.assertGreaterEqual(saved, 4, error)
        Cuts.saved += saved


def test_of(kind, name, program, least, grows=False):
    def test(self):
        for ranks in RANKS:
            saved = self.cut_often(ranks, name, program, least, grows)
            self.assertGreaterEqual(saved, least)
            kind.saved += saved

    return test


for file, patterns in PROGRAMS_OF.items():
    # What they do all the time once kept them from being saved at all.
    least = 1 if file in ("groups", "threads") else 0
    for pattern, steps in patterns.items():
        words = [Path(PROGRAMS) / f"{file}.{MPI}", pattern, steps]
        setattr(Cuts, f"test_{pattern}", test_of(Cuts, pattern, words, least, True))


if __name__ == "__main__":
    print(f"BACKSTAY_SEED={SEED}", flush=True)
    unittest.main(argv=[sys.argv[0], *sys.argv[6:]])
