#!/usr/bin/env python3
"""Each row of docs/format/process-state.md says what a restart does; its probe says so, too.

Usage: state_test.py BOOT PROGRAMS_FOLDER [TEST ...]
A probe is one of programs/state.c, which sets the thing and tells it before and after, or a test
`FILE::TEST` of this repository that shows the verdict.
"""

import ctypes
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import booted
import companion

PROGRAM = Path(sys.argv[2]).resolve() / "image_state"
ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "format" / "process-state.md"
BACK, REFUSED, FORGOTTEN = VERDICTS = ("comes back", "refused", "forgotten")


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


def rights(process):
    """Ids and capabilities of each thread, that of the boot program too."""
    status = [path.read_text() for path in Path(f"/proc/{process}/task").glob("*/status")]
    return sorted(re.findall(r"(?:[UG]id|Groups|Cap\w+|NoNewPrivs):.*", text) for text in status)


class State(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.program = PROGRAM
        self.addCleanup(ctypes.CDLL(None).mq_unlink, b"/backstay-state")
        self.folder = Path(scratch.name)
        self.folder.chmod(0o777)  # the program gives up root

    def lives(self, probes, starter=(), **kwargs):
        """What the program tells before, and after two restarts. Raises what refuses it.

        `kwargs` are those of the restarts.
        """
        image, go, out_path = (self.folder / name for name in ("image", "go", "out"))
        go.unlink(missing_ok=True)
        with open(out_path, "wb") as out:
            words = ["--image", image, "--", *starter, self.program, go, *probes]
            life = booted.Booted(words, out=out, cwd=self.folder)
        self.addCleanup(life.kill)
        deadline = time.monotonic() + booted.END_S
        while not out_path.read_text().endswith("end\n"):
            self.assertIsNone(life.process.poll(), "the program has ended")
            self.assertLess(time.monotonic(), deadline)
        given = rights(life.process.pid)
        for _ in range(2):
            self.assertIsNotNone(life.cut(), "the program has ended")
            self.assertEqual(rights(life.process.pid), given)
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
        names = self.probes(BACK, FORGOTTEN)
        self.assertEqual(self.compare(names, *self.lives(names)), {})

    def test_what_is_refused(self):
        for name in self.probes(REFUSED):
            with self.subTest(name):
                with self.assertRaises(booted.Refused):
                    before, _ = self.lives([name])
                    if before[name] == "-":
                        self.skipTest("not set on this machine")

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_rights_that_were_given_up(self):
        """By a program that is replaced (exec); nobody but root gives them up again."""
        boot, self.program = self.folder / "boot", self.folder / "program"
        shutil.copy(booted.BOOT, boot)
        shutil.copy(PROGRAM, self.program)
        before, booted.BOOT = booted.BOOT, str(boot)
        self.addCleanup(setattr, booted, "BOOT", before)
        setpriv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        names = ["thread_nice", "pipe_size"]
        self.assertEqual(self.compare(names, *self.lives(names, setpriv)), {})
        for name in ("image", "out"):
            (self.folder / name).chmod(0o666)
        done = subprocess.run([boot, "--restore", self.folder / "image"], capture_output=True,
                              text=True, user=1000, group=1000, extra_groups=[])  # fmt: skip
        self.assertEqual(done.returncode, 78)
        self.assertIn("had given up rights and ran as user 65534", done.stderr)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "needs two processors")
    def test_processors_that_the_new_start_does_not_have(self):
        script = "import os\nos.sched_setaffinity(0, {%d})\nwhile input():\n"
        script += "  print(os.sched_getaffinity(0), flush=True)"
        first, *_, last = here = sorted(os.sched_getaffinity(0))
        pool, memory = companion.new_pool()
        lines = companion.Lines()
        ends = lines.to_read, lines.out_write
        words = ["--", "/usr/bin/python3", "-c", script % last]
        life = companion.Companion(pool, words, *ends)
        self.assertEqual(lines.say("?"), f"{{{last}}}\n".encode())
        image, _ = companion.take_image(life, memory, None)
        life.kill()
        for given, missing in (here, ""), ([first], "processors"):
            os.sched_setaffinity(0, given)
            self.addCleanup(os.sched_setaffinity, 0, here)
            life = companion.bring_back(pool, memory, image, *ends)
            self.assertEqual(life.missing, missing)
            wanted = first if missing else last
            self.assertEqual(lines.say("?"), f"{{{wanted}}}\n".encode())
            life.kill()

    def test_what_was_given_is_that_of_the_new_start(self):
        """A launcher's processors and limits; what the program changed itself stays."""
        script = """
import os, resource
os.nice(3)
def tell(): print(os.sched_getaffinity(0), resource.getrlimit(7)[0], os.nice(0), flush=True)
tell()
while not os.path.exists('go'): pass
tell()
"""
        all_here, hard = os.sched_getaffinity(0), resource.getrlimit(resource.RLIMIT_NOFILE)[1]

        def give(processors, descriptors):
            os.sched_setaffinity(0, processors)
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, hard))

        self.addCleanup(give, all_here, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        one, image = {min(all_here)}, self.folder / "image"
        give(one, 500)
        with open(self.folder / "out", "wb") as out:
            words = ["--image", image, "--", "/usr/bin/python3", "-c", script]
            life = booted.Booted(words, out=out, cwd=self.folder)
        self.addCleanup(life.kill)
        while b"\n" not in (told_so_far := (self.folder / "out").read_bytes()):
            self.assertIsNone(life.process.poll())
        self.assertIsNotNone(life.cut())
        life.kill()
        give(all_here, 600)
        life = booted.Booted(["--restore", image], cwd="/")
        self.addCleanup(life.kill)
        (self.folder / "go").touch()
        self.assertEqual(life.end(), 0)
        nice = os.nice(0) + 3
        self.assertEqual(told_so_far.decode(), f"{one} 500 {nice}\n")
        self.assertEqual((self.folder / "out").read_text().splitlines()[1],
                         f"{all_here} 600 {nice}")  # fmt: skip


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
