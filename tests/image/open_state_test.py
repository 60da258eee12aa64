#!/usr/bin/env python3
"""State of open files that no read and no write shows: borders of messages, holes, seals, signals,
numbers up to the limit. And what looks like a file and is none.

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
    def test_messages_of_a_pipe(self):
        """A read ends with a message, and what it leaves of one is gone; before and behind."""
        begins = (
            "one, two = (os.pipe2(os.O_DIRECT) for _ in range(2))\n"
            "for text in (b'abc', b'defg'): os.write(one[1], text)\nos.write(two[1], b'single')"
        )
        goes_on = (
            "for pipe in (one, two): os.set_blocking(pipe[0], False)\n"
            "for text in (b'hi', b'jkl'): os.write(one[1], text)\nos.write(two[1], b'next')\n"
            "print([os.read(one[0], n) for n in (2, 9, 9, 9)], os.read(two[0], 4),\n"
            "      os.read(two[0], 9), flush=True)"
        )
        said = b"[b'ab', b'defg', b'hi', b'jkl'] b'sing' b'next'\n"
        self.assertEqual(self.waits(begins, goes_on), (said, b""))

    def test_messages_that_were_apart_before(self):
        """Their writer has gone; of another pipe it writes bytes by now."""
        begins = (
            "import fcntl\none, two = (os.pipe2(os.O_DIRECT) for _ in range(2))\n"
            "for pipe in (one, two):\n  for text in (b'abc', b'defg'): os.write(pipe[1], text)\n"
            "os.close(one[1])\nfcntl.fcntl(two[1], fcntl.F_SETFL, 0)\n"
        )
        goes_on = (
            "for pipe in (one, two): os.set_blocking(pipe[0], False)\n"
            "for text in (b'h', b'i'): os.write(two[1], text)\n"
            "print(*([os.read(r, 9) for _ in range(3)] for r, _ in (one, two)), flush=True)"
        )
        said = b"[b'abc', b'defg', b''] [b'abc', b'defg', b'hi']\n"
        self.assertEqual(self.waits(begins, goes_on), (said, b""))

    def test_holes_of_a_removed_file(self):
        """It holds little, and is long: a file on the disk, and one in memory."""
        begins = (
            "files = [os.open('x', os.O_RDWR | os.O_CREAT), os.memfd_create('x')]\nos.unlink('x')\n"
            "for fd in files:\n  os.ftruncate(fd, 1 << 30)\n  os.pwrite(fd, b'middle', 1 << 29)\n"
            "os.pwrite(files[1], b'end', (1 << 30) - 3)\ncopy = os.dup(files[0])"
        )
        goes_on = (
            "for fd in (*files, copy):\n"
            "  print(*(os.pread(fd, 6, at) for at in (1 << 29, (1 << 30) - 3)),\n"
            "        os.pread(fd, 2, 0), os.fstat(fd).st_size == 1 << 30,\n"
            "        os.fstat(fd).st_blocks < 100, flush=True)"
        )
        disk = b"b'middle' b'\\x00\\x00\\x00' b'\\x00\\x00' True True\n"
        memory = b"b'middle' b'end' b'\\x00\\x00' True True\n"
        self.assertEqual(self.waits(begins, goes_on), (disk + memory + disk, b""))

    def test_seals(self):
        """One that has some, one that may get some, one that may not."""
        begins = (
            "import fcntl, mmap\nseals = lambda fd: fcntl.fcntl(fd, fcntl.F_GET_SEALS)\n"
            "add = lambda fd, what: fcntl.fcntl(fd, fcntl.F_ADD_SEALS, what)\n"
            "sealed, free = (os.memfd_create('x', os.MFD_ALLOW_SEALING) for _ in range(2))\n"
            "closed = os.memfd_create('x')\n"
            "for fd in (sealed, free): os.write(fd, b'kept' * 1024)\n"
            "add(sealed, 2 | 4 | 8)\nmapped = mmap.mmap(free, 4096)"
        )
        goes_on = (
            "def tries(what, *words):\n  try: what(*words)\n  except OSError: return 'no'\n"
            "  return 'yes'\n"
            "print([seals(fd) for fd in (sealed, free, closed)], tries(os.write, sealed, b'x'),\n"
            "      tries(os.ftruncate, sealed, 1), tries(add, free, 2), tries(add, closed, 2),\n"
            "      os.pread(sealed, 4, 0), flush=True)"
        )
        said = b"[14, 0, 1] no no yes no b'kept'\n"
        self.assertEqual(self.waits(begins, goes_on), (said, b""))

    def test_signals_that_tell_of_readiness(self):
        begins = (
            "import fcntl, signal, socket\ntold = []\n"
            "for number in (signal.SIGIO, signal.SIGUSR2):\n"
            "  signal.signal(number, lambda number, _: told.append(number))\n"
            "(a, b), (r, w) = socket.socketpair(), os.pipe()\n"
            "fcntl.fcntl(r, 10, signal.SIGUSR2)  # F_SETSIG\n"
            "for fd in (a.fileno(), r):\n  fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())\n"
            "  fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)"
        )
        goes_on = (
            "import time\nb.send(b'x')\nos.write(w, b'x')\nend = time.monotonic() + 10\n"
            "while len({*told}) < 2 and time.monotonic() < end: pass\n"
            "print([fcntl.fcntl(fd, fcntl.F_GETOWN) == os.getpid() for fd in (a, r)],\n"
            "      {*told} == {signal.SIGIO, signal.SIGUSR2}, flush=True)"
        )
        self.assertEqual(self.waits(begins, goes_on), (b"[True, True] True\n", b""))

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

    def test_numbers_just_below_the_limit(self):
        holds = "r, w = os.pipe()\na = os.open('/dev/null', 0); os.dup2(a, {}); os.close(a)"
        goes_on = "os.write(w, b'x')\nos.write(1, b'out' + os.read(r, 1))\nos.write(2, b'error')"
        for number in (59, 60, 61, 62, 63):
            with self.subTest(number):
                self.within(64, lambda number=number: self.assertEqual(
                    self.waits(holds.format(number), goes_on), (b"outx", b"error")))
                for name in ("ready", "go"):
                    (self.scratch / name).unlink()

    def test_no_numbers_left_for_a_restart(self):
        """All but those that it needs for itself; one less is refused at the cut, by name."""
        holds = "r, w = os.pipe()\nwhile os.open('/dev/null', os.O_RDONLY) < {}: pass"
        goes_on = "os.write(w, b'x')\nos.write(1, b'out' + os.read(r, 1))\nos.write(2, b'error')"
        self.within(64, lambda: self.assertEqual(
            self.waits(holds.format(57), goes_on), (b"outx", b"error")))
        for name in ("ready", "go"):
            (self.scratch / name).unlink()

        def refused():
            with self.assertRaisesRegex(booted.Refused, "has 59 of 64 descriptors open"):
                self.waits(holds.format(58), "")
        self.within(64, refused)


class LooksLikeAFile(Refusing):
    def test_message_queue(self):
        queue = (
            "import atexit, ctypes\nlibc = ctypes.CDLL(None)\n"
            "name = b'/backstay-%d' % os.getpid()\n"
            "assert libc.mq_open(name, os.O_RDWR | os.O_CREAT, 0o600, None) >= 0\n"
            "atexit.register(lambda: libc.mq_unlink(name))"
        )
        self.cut_refused(queue, "a restart finds nothing of the kind there")

    def test_process_and_namespace(self):
        self.cut_refused("p = os.pidfd_open(os.getpid())", "pidfd")
        self.cut_refused("n = os.open('/proc/self/ns/net', os.O_RDONLY)", "is net:[")

    def test_removed_folder(self):
        removed = "os.mkdir('f')\nf = os.open('f', os.O_RDONLY)\nos.rmdir('f')"
        self.cut_refused(removed, "/f (deleted): it cannot be saved")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
