#!/usr/bin/env python3
"""State of open files that no read and no write shows: borders of messages, numbers up to the
limit. And what looks like a file and is none.

Usage: open_state_test.py BOOT PROGRAMS_FOLDER
"""

import os
import resource
import sys
import traceback
import unittest

import booted
from descriptor_test import Cut
from refuse_test import Refusing


class State(Cut):
    def refused(self, begins, why):
        with self.assertRaisesRegex(booted.Refused, why):
            self.waits(begins, "")

    def test_messages_of_a_pipe(self):
        """Their borders would be lost; also where their writer has ended or writes bytes now."""
        begins = "r, w = os.pipe2(os.O_DIRECT)\nfor text in (b'abc', b'defg'): os.write(w, text)\n"
        for rest in ("", "os.close(w)", "import fcntl\nfcntl.fcntl(w, fcntl.F_SETFL, 0)"):
            with self.subTest(rest):
                self.refused(begins + rest, "holds messages")
                (self.scratch / "ready").unlink()

    def test_an_empty_pipe_keeps_the_borders_of_messages(self):
        goes_on = "for one in b'abc', b'd': os.write(w, one)\nprint(os.read(r, 99), os.read(r, 99))"
        self.assertEqual(self.waits("r, w = os.pipe2(os.O_DIRECT)", goes_on),
                         (b"b'abc' b'd'\n", b""))

    def within(self, limit, check):
        """In a process that may have so many descriptors, and no more."""
        cleanups = self._cleanups  # the parent's; its folder stays while they are there
        child = os.fork()
        if child == 0:
            self._cleanups = []
            code = 1
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
                check()
                code = 0
            except BaseException:
                traceback.print_exc()
            self.doCleanups()  # no program outlives its test
            os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self._cleanups = cleanups

    def test_numbers_near_the_limit(self):
        """Seven above them and two for the pipe are left; one less is refused by name."""
        holds = "r, w = os.pipe()\na = os.open('/dev/null', 0); os.dup2(a, {}); os.close(a)"
        goes_on = "os.write(w, b'x')\nos.write(1, b'out' + os.read(r, 1))\nos.write(2, b'error')"
        self.within(64, lambda: self.assertEqual(
            self.waits(holds.format(54), goes_on), (b"outx", b"error")))
        for name in ("ready", "go"):
            (self.scratch / name).unlink()
        self.within(64, lambda: self.refused(holds.format(55), "has descriptor 55 of 64 that"))


class LooksLikeAFile(Refusing):
    def test_message_queue(self):
        queue = (
            "import atexit, ctypes\nlibc = ctypes.CDLL(None)\n"
            "name = b'/backstay-%d' % os.getpid()\n"
            "assert libc.mq_open(name, os.O_RDWR | os.O_CREAT, 0o600, None) >= 0\n"
            "atexit.register(lambda: libc.mq_unlink(name))"
        )
        self.cut_refused(queue, ": it cannot be saved")

    def test_process_and_namespace(self):
        self.cut_refused("p = os.pidfd_open(os.getpid())", "pidfd")
        self.cut_refused("n = os.open('/proc/self/ns/net', os.O_RDONLY)", "is net:[")

    def test_removed_folder(self):
        removed = "os.mkdir('f')\nf = os.open('f', os.O_RDONLY)\nos.rmdir('f')"
        self.cut_refused(removed, "/f (deleted): it cannot be saved")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
