#!/usr/bin/env python3
"""Descriptors that a program was given by what started it, when it is brought back.

Usage: descriptor_test.py BOOT PROGRAMS_FOLDER
"""

import os
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import booted

PYTHON = "/usr/bin/python3"


class Given(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)

    def waits(self, begins, goes_on, **kwargs):
        """The program does `begins`, is cut and killed, and does `goes_on`. Returns its output.

        The new process has other descriptors 0, 1 and 2.
        """
        script = (
            f"import os\n{begins}\nos.close(os.open('ready', os.O_CREAT))\n"
            f"while not os.path.exists('go'): pass\n{goes_on}"
        )
        image = self.scratch / "image"
        life = booted.Booted(
            ["--image", image, "--", PYTHON, "-c", script], cwd=self.scratch, **kwargs
        )
        self.addCleanup(life.kill)
        while not (self.scratch / "ready").exists():
            self.assertIsNone(life.process.poll())
        self.assertIsNotNone(life.cut())
        life.kill()
        (self.scratch / "go").touch()
        life = booted.Booted(["--restore", image], out=subprocess.PIPE, stderr=subprocess.PIPE)
        with life.process.stdout as out, life.process.stderr as error:
            said = out.read(), error.read()
        self.assertEqual(life.end(), 0, said)
        return said

    def test_pipe_whose_writer_has_ended(self):
        """What is left in it is kept: as standard input, and as any other descriptor."""
        ends = os.pipe()
        os.write(ends[1], b"12345")
        os.close(ends[1])
        begins = "first = os.read(0, 2)\nr, w = os.pipe()\nos.write(w, b'67')\nos.close(w)"
        goes_on = "for fd in (0, 0, r, r): first += os.read(fd, 9)\nos.write(1, first)"
        with os.fdopen(ends[0]) as stdin:
            self.assertEqual(self.waits(begins, goes_on, stdin=stdin)[0], b"1234567")

    def test_terminal_that_was_all_three(self):
        """A new start gives each of 0, 1 and 2 anew; a copy of all three is one of the output."""
        ours, theirs = os.openpty()
        self.addCleanup(os.close, ours)
        with os.fdopen(theirs, "w") as tty:
            goes_on = "os.write(1, b'out '); os.write(2, b'error'); os.write(same, b'copy')"
            said = self.waits("same = os.dup(1)", goes_on, stdin=tty, out=tty, stderr=tty)
        self.assertEqual(said, (b"out copy", b"error"))

    def test_socket_as_input_and_output(self):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            said = self.waits("os.write(1, b'x')", "os.write(1, b'out')", stdin=theirs, out=theirs)
        self.assertEqual(said, (b"out", b""))

    def test_its_own_files_of_proc(self):
        """Their names have the process's id, and the process that goes on has another one."""
        begins = "status = open('/proc/self/status')\nfolder = os.open('/proc/self/fd', os.O_RDONLY)"
        goes_on = (
            "lines = dict(line.split(':') for line in status)\n"
            "assert int(lines['Pid']) == os.getpid()\nassert '1' in os.listdir(folder)"
        )
        self.waits(begins, goes_on)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
