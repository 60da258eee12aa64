#!/usr/bin/env python3
"""Each row of docs/format/process-state.md says what a restart does; its probe says so, too.

Usage: state_test.py BOOT PROGRAMS_FOLDER [TEST ...]
A probe is one of programs/state.c, which sets the thing and tells it before and after, or a test
`FILE::TEST` of this repository that shows the verdict.
"""

import ctypes
import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import booted

PROGRAM = Path(sys.argv[2]).resolve() / "image_state"
ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "format" / "process-state.md"
BACK, REFUSED, FORGOTTEN = VERDICTS = ("comes back", "refused", "forgotten")
NOT_YET = {  # what the page says of these does not hold yet
    "packet_pipe", "seals", "owner", "owner_signal", "message_queue",
}  # fmt: skip


def rows():
    """(thing, verdict, probe) of each row of the page's tables with these columns."""
    found, inside = [], False
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        inside = line.startswith("|") and (inside or cells == ["what", "verdict", "probe"])
        if inside and cells[0] not in ("what", "---"):
            found.append((cells[0], cells[1], cells[2].strip("`")))
    return found


def told(text):
    """What a program that ran to its end told: before, and after."""
    parts = [dict(re.findall(r"^(\w+) (.*)$", part, re.M)) for part in text.split("end\n")]
    assert len(parts) == 3, text
    return parts[:2]


class State(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.addCleanup(ctypes.CDLL(None).mq_unlink, b"/backstay-state")
        self.folder = Path(scratch.name)
        self.folder.chmod(0o777)  # the program gives up root

    def lives(self, probes, **kwargs):
        """What the program tells before, and after two restarts. Raises what refuses it."""
        image, go, out_path = (self.folder / name for name in ("image", "go", "out"))
        go.unlink(missing_ok=True)
        with open(out_path, "wb") as out:
            words = ["--image", image, "--", PROGRAM, go, *probes]
            life = booted.Booted(words, out=out, cwd=self.folder, **kwargs)
        self.addCleanup(life.kill)
        deadline = time.monotonic() + booted.END_S
        while not out_path.read_text().endswith("end\n"):
            self.assertIsNone(life.process.poll(), "the program has ended")
            self.assertLess(time.monotonic(), deadline)
        for _ in range(2):
            self.assertIsNotNone(life.cut(), "the program has ended")
            life.kill()
            life = booted.Booted(["--image", image, "--restore", image], cwd="/", **kwargs)
            self.addCleanup(life.kill)
        go.touch()
        self.assertEqual(life.end(), 0)
        return told(out_path.read_text())

    def probes(self, *verdicts):
        names = [probe for _, verdict, probe in rows() if verdict in verdicts]
        return [name for name in names if "::" not in name]

    def test_the_page(self):
        names = [probe for _, _, probe in rows()]
        inside = {name for name in names if "::" not in name}
        known = subprocess.run([PROGRAM, "list"], capture_output=True, text=True, check=True)
        self.assertEqual(inside, set(known.stdout.split()), "rows and probes of state.c")
        self.assertEqual(len(inside), sum("::" not in name for name in names), "a probe twice")
        self.assertLessEqual(NOT_YET, inside)
        for thing, verdict, probe in rows():
            self.assertIn(verdict, VERDICTS, thing)
            file, _, test = probe.partition("::")
            if test:
                text = (ROOT / "tests" / file).read_text()
                self.assertRegex(text, rf"(def|TEST\w*\(\w+,) ?{test}\b", thing)

    def compare(self, names, before, after):
        """Names of which the verdict does not hold; those not set here are passed over."""
        back = set(self.probes(BACK))
        set_here = [name for name in names if before[name] != "-"]
        print("not set on this machine:", *(set(names) - set(set_here)), flush=True)
        return {name: (before[name], after[name]) for name in set_here
                if (before[name] == after[name]) != (name in back)}  # fmt: skip

    def test_what_comes_back_and_what_is_forgotten(self):
        names = [name for name in self.probes(BACK, FORGOTTEN) if name not in NOT_YET]
        self.assertEqual(self.compare(names, *self.lives(names)), {})

    def test_what_is_refused(self):
        for name in self.probes(REFUSED):
            with self.subTest(name):
                wanted = AssertionError if name in NOT_YET else booted.Refused
                with self.assertRaises(wanted):
                    self.lives([name])

    def test_what_does_not_hold_yet(self):
        """Each of these that holds by now leaves NOT_YET."""
        for name in NOT_YET & set(self.probes(BACK)):
            with self.subTest(name):
                try:
                    wrong = self.compare([name], *self.lives([name]))
                except (AssertionError, booted.Refused):
                    wrong = True
                self.assertTrue(wrong, "it holds: take it out of NOT_YET")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
