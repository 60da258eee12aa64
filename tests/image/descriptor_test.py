#!/usr/bin/env python3
"""Descriptors that a program was given by what started it, when it is brought back.

Usage: descriptor_test.py BOOT PROGRAMS_FOLDER
"""

import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import booted

PYTHON = "/usr/bin/python3"


class Cut(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)

    def waits(self, begins, goes_on, dead_s=0, code=0, **kwargs):
        """The program does `begins`, is cut and killed, and does `goes_on`. Returns its output.

        The new process has other descriptors 0, 1 and 2, and starts `dead_s` later.
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
        time.sleep(dead_s)  # not a wait: clocks go on while the program is dead
        life = booted.Booted(["--restore", image], out=subprocess.PIPE, stderr=subprocess.PIPE)
        with life.process.stdout as out, life.process.stderr as error:
            said = out.read(), error.read()
        self.assertEqual(life.end(), code, said)
        return said


class Nameless(Cut):
    """Files that were removed, or never had a name."""

    def test_file_without_a_name_that_is_mapped_and_open_twice(self):
        """One file stays one: each sees what is written by the others."""
        for name in (False, True):
            begins = (
                "import mmap\nfd = os.memfd_create('x')\n"
                if not name
                else "import mmap\nfd = os.open('x', os.O_RDWR | os.O_CREAT)\n"
                "other = os.open('x', os.O_RDWR)\nos.unlink('x')\n"
            ) + (
                "os.ftruncate(fd, 9000)\nfirst = mmap.mmap(fd, 4096)\n"
                "second = mmap.mmap(fd, 4096)\n"
                "again = os.open(f'/proc/self/fd/{fd}', os.O_RDWR)\n"
                "first[:3] = b'one'\nos.pwrite(again, b'end', 8997)"
            )
            goes_on = (
                "second[3:6] = b'two'\nos.pwrite(again, b'six', 6)\n"
                "print(os.pread(fd, 9, 0), first[:9], os.pread(fd, 9, 8997),\n"
                "      os.fstat(again).st_size, flush=True)"
            )
            said = b"b'onetwosix' b'onetwosix' b'end' 9000\n"
            self.assertEqual(self.waits(begins, goes_on), (said, b""))
            (self.scratch / "ready").unlink()
            (self.scratch / "go").unlink()

    def test_file_that_never_had_a_name(self):
        begins = (
            "fd = os.open('.', os.O_RDWR | os.O_TMPFILE, 0o600)\nos.write(fd, b'kept')"
        )
        goes_on = "os.write(fd, b' too')\nprint(os.pread(fd, 9, 0), flush=True)"
        self.assertEqual(self.waits(begins, goes_on), (b"b'kept too'\n", b""))

    def test_file_that_gets_a_name_after_the_restart(self):
        """It is on the disk, with its permissions."""
        begins = (
            "import ctypes\nfd = os.open('.', os.O_RDWR | os.O_TMPFILE)\n"
            "os.fchmod(fd, 0o440)\nos.write(fd, b'kept')"
        )
        goes_on = (
            "print(ctypes.CDLL(None).linkat(-100, f'/proc/self/fd/{fd}'.encode(), -100, b'named',\n"
            "                               0x400), flush=True)\nos.write(fd, b' too')"
        )
        self.assertEqual(self.waits(begins, goes_on), (b"0\n", b""))
        named = self.scratch / "named"
        self.assertEqual((named.read_bytes(), named.stat().st_mode & 0o777), (b"kept too", 0o440))

    def test_file_without_a_name_that_nobody_may_open(self):
        begins = "fd = os.open('.', os.O_RDWR | os.O_TMPFILE)\nos.fchmod(fd, 0)"
        goes_on = "print(oct(os.fstat(fd).st_mode), flush=True)"
        self.assertEqual(self.waits(begins, goes_on), (b"0o100000\n", b""))

    def test_removed_name_of_a_file_that_has_another(self):
        begins = (
            "made = os.open('a', os.O_RDWR | os.O_CREAT)\nos.write(made, b'kept')\n"
            "os.link('a', 'b')\nnamed = os.open('b', os.O_RDWR)\n"
            "removed = os.open('a', os.O_RDONLY)\nos.close(made)\nos.unlink('a')"
        )
        goes_on = "print(os.pread(named, 9, 0), os.pread(removed, 9, 0), flush=True)"
        self.assertEqual(self.waits(begins, goes_on), (b"b'kept' b'kept'\n", b""))

    def test_a_file_that_is_written_by_a_removed_name_is_refused(self):
        """After a restart, what the program writes to it would not be in the file that stands."""
        removed = "fd = os.open('a', os.O_RDWR | os.O_CREAT)\nos.link('a', 'b')\nos.unlink('a')"
        with self.assertRaisesRegex(booted.Refused, "/a .deleted., which has another name"):
            self.waits(removed, "")
        (self.scratch / "ready").unlink()
        with self.assertRaisesRegex(booted.Refused, "whose name looks like that of a removed file"):
            self.waits("fd = os.open('c (deleted)', os.O_RDWR | os.O_CREAT)", "")

    def test_as_many_as_a_restart_can_make(self):
        """With other descriptors they are more than the soft limit."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 1100:
            self.skipTest("so many descriptors are not allowed here")
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
        begins = (
            "import mmap, resource\nmapped = [mmap.mmap(-1, 4096) for _ in range(1024)]\n"
            "for i, one in enumerate(mapped): one[:2] = i.to_bytes(2, 'little')"
        )
        goes_on = (
            "print([int.from_bytes(one[:2], 'little') for one in mapped] == list(range(1024)),\n"
            "      resource.getrlimit(resource.RLIMIT_NOFILE)[0], flush=True)"
        )
        self.assertEqual(self.waits(begins, goes_on), (b"True 1024\n", b""))

    def test_copies_of_a_large_removed_file_take_its_room_once(self):
        begins = (
            "fd = os.memfd_create('x')\nos.ftruncate(fd, 40 << 20)\n"
            "os.pwrite(fd, b'end', 40 << 20)\ncopies = [os.dup(fd) for _ in range(3)]"
        )
        goes_on = "print([os.pread(one, 3, 40 << 20) for one in copies], flush=True)"
        said = b"[b'end', b'end', b'end']\n"
        self.assertEqual(self.waits(begins, goes_on), (said, b""))


class Given(Cut):
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

    def test_event_counter(self):
        """It keeps its count, whether a read takes one or all, and whether a read waits."""
        begins = (
            "import ctypes, fcntl\nlibc = ctypes.CDLL(None)\n"
            "plain, tickets = libc.eventfd(0, 0o4000), libc.eventfd(0, 1)\n"
            "for fd in (plain, tickets): os.write(fd, (5_000_000_000).to_bytes(8, 'little'))\n"
            "copy = os.dup(plain)"
        )
        goes_on = (
            "read = lambda fd: int.from_bytes(os.read(fd, 8), 'little')\nfirst = read(copy)\n"
            "try: read(plain)\nexcept BlockingIOError: print(first, read(tickets), flush=True)"
        )
        self.assertEqual(self.waits(begins, goes_on), (b"5000000000 1\n", b""))

    def test_timer(self):
        """One has expired, one will, one is not set; an interval goes on."""
        begins = (
            "import ctypes, select, struct\nlibc = ctypes.CDLL(None)\n"
            "def timer(left, interval):\n"
            "  fd = libc.timerfd_create(1, 0o4000)\n"
            "  spec = struct.pack('4q', 0, interval, 0, left)\n"
            "  libc.timerfd_settime(fd, 0, spec, None)\n  return fd\n"
            "expired, later, never = timer(1, 0), timer(300_000_000, 1_000_000), timer(0, 0)\n"
            "select.select([expired], [], [])"
        )
        goes_on = (
            "read = lambda fd: int.from_bytes(os.read(fd, 8), 'little')\nonce = read(expired)\n"
            "for i in range(3):\n  select.select([later], [], [])\n  read(later)\n"
            "for fd in (expired, never):\n  try: once = read(fd)\n  except BlockingIOError: pass\n"
            "  else: once = 'again'\n"
            "print(once, flush=True)"
        )
        self.assertEqual(self.waits(begins, goes_on), (b"1\n", b""))

    def test_signal_set(self):
        begins = (
            "import ctypes, signal\nlibc = ctypes.CDLL(None)\n"
            "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
            "mask = (ctypes.c_uint64 * 16)(1 << signal.SIGUSR1 - 1)\n"
            "fd = libc.signalfd(-1, mask, 0o2000000)"
        )
        goes_on = (
            "os.kill(os.getpid(), signal.SIGUSR1)\n"
            "print(int.from_bytes(os.read(fd, 128)[:4], 'little') == signal.SIGUSR1,\n"
            "      os.get_inheritable(fd), flush=True)"
        )
        self.assertEqual(self.waits(begins, goes_on), (b"True False\n", b""))

    def test_epoll(self):
        """A set that another one watches keeps what it watches, and the data of each."""
        begins = (
            "import ctypes, select, struct\nlibc = ctypes.CDLL(None)\n"
            "outer, inner = select.epoll(), select.epoll()\nr, w = os.pipe()\n"
            "event = struct.pack('<IQ', select.EPOLLIN | select.EPOLLET, 0x123456789abcdef)\n"
            "libc.epoll_ctl(inner.fileno(), 1, r, event)\n"
            "outer.register(inner.fileno(), select.EPOLLIN)"
        )
        goes_on = (
            "quiet = outer.poll(0)\nos.write(w, b'x')\n"
            "seen = outer.poll(5) == [(inner.fileno(), select.EPOLLIN)]\n"
            "got = ctypes.create_string_buffer(24)\n"
            "count = [libc.epoll_wait(inner.fileno(), got, 2, 0) for i in range(2)]\n"
            "print(quiet, seen, count, struct.unpack('<IQ', got.raw[:12]), flush=True)"
        )
        said = b"[] True [1, 0] (1, 81985529216486895)\n"
        self.assertEqual(self.waits(begins, goes_on), (said, b""))

    def test_asyncio(self):
        """A loop that runs at each of two cuts. Its children are not taken for the process."""
        script = """
import asyncio, os
def is_running():
    try: return asyncio.get_running_loop() is not None
    except RuntimeError: return False
async def stand(name):
    os.close(os.open(name, os.O_CREAT))
    while not os.path.exists("go-" + name): await asyncio.sleep(0.001)
    child = os.fork()
    if child == 0: os._exit(is_running())
    print(is_running(), os.waitpid(child, 0)[1], flush=True)
    await asyncio.wait_for(asyncio.sleep(0.001), 60)
async def main():
    await stand("first")
    await stand("second")
asyncio.run(main())
asyncio.run(asyncio.sleep(0))
print("end", flush=True)
"""
        image = self.scratch / "image"
        options = ["--image", image, "--", PYTHON, "-c", script]
        said = self.scratch / "said"
        for name in ("first", "second", None):
            with open(said, "ab") as out:
                life = booted.Booted(options, out=out, cwd=self.scratch)
            self.addCleanup(life.kill)
            options = ["--restore", image, "--image", image]
            if name is None:
                break
            while not (self.scratch / name).exists():
                self.assertIsNone(life.process.poll(), said.read_text())
            self.assertIsNotNone(life.cut())
            life.kill()
            (self.scratch / f"go-{name}").touch()
        self.assertEqual((life.end(), said.read_text()), (0, "True 0\nTrue 0\nend\n"))

    def test_sockets_to_itself(self):
        """What lies in both ends, an end that is shut, a copy of one, and a flag."""
        begins = (
            "import socket\na, b = socket.socketpair()\n"
            "c, d = socket.socketpair(type=socket.SOCK_SEQPACKET)\n"
            "a.sendall(b'to b')\na.sendall(b'.' * 50000)\nb.sendall(b'to a')\n"
            "copy = b.dup()\na.shutdown(socket.SHUT_WR)\nc.setblocking(False)"
        )
        goes_on = (
            "got = b''\n"
            "while part := copy.recv(99999): got += part\n"
            "b.sendall(b', again')\nanswer = a.recv(4, socket.MSG_WAITALL) + a.recv(99)\n"
            "try: c.recv(9)\nexcept BlockingIOError: d.send(b'one')\n"
            "d.send(b'two')\n"
            "print(got[:4], len(got), answer, c.recv(9), c.recv(9), flush=True)"
        )
        said = b"b'to b' 50004 b'to a, again' b'one' b'two'\n"
        self.assertEqual(self.waits(begins, goes_on), (said, b""))

    def test_epoll_by_copies(self):
        """The numbers under which files were added are closed, and copies of the files live on. One
        of the numbers has another file now.
        """
        begins = (
            "import ctypes, select\nset = select.epoll()\n"
            "pipes = [os.pipe() for i in range(3)]\nwas = [r for r, w in pipes]\n"
            "for r in was: set.register(r, select.EPOLLIN)\n"
            "copies = [os.dup(r) for r in was]\nfor r in was: os.close(r)\n"
            "other = ctypes.CDLL(None).eventfd(5, 0)\nassert other == was[0]\n"
            "set.register(other, select.EPOLLIN | select.EPOLLET)\nset.poll(0)"
        )
        goes_on = (
            "first = set.poll(0)\n"
            "for r, w in pipes: os.write(w, b'x')\n"
            "print(first == [(other, 1)], sorted(set.poll(0)) == [(r, 1) for r in was],\n"
            "      os.read(other, 8)[0], [os.read(r, 9) for r in copies], flush=True)"
        )
        said = b"True True 5 [b'x', b'x', b'x']\n"
        self.assertEqual(self.waits(begins, goes_on), (said, b""))

    def test_epoll_that_tells_once(self):
        """A one-shot watch that has told its event tells no other one, and no hang-up, before the
        program asks for it.
        """
        begins = (
            "import select, socket\nset = select.epoll()\n"
            "pairs = [socket.socketpair() for i in range(3)]\n"
            "ends = [b.fileno() for a, b in pairs]\n"
            "for fd in ends: set.register(fd, select.EPOLLIN | select.EPOLLONESHOT)\n"
            "for a, b in pairs[:2]: a.send(b'x')\n"
            "assert len(set.poll(0)) == 2 and pairs[0][1].recv(9) == b'x'"
        )
        goes_on = (
            "pairs[0][0].close()\npairs[2][0].send(b'y')\n"
            "seen = [[ends.index(fd) for fd, events in set.poll(0)] for i in range(2)]\n"
            "for fd in ends: set.modify(fd, select.EPOLLIN | select.EPOLLONESHOT)\n"
            "print(seen, sorted(ends.index(fd) for fd, events in set.poll(0)), flush=True)"
        )
        self.assertEqual(self.waits(begins, goes_on), (b"[[2], []] [0, 1, 2]\n", b""))

    def test_epoll_that_watches_the_input(self):
        """The new start must give it a file that epoll takes; else the restart says so."""
        ours, theirs = os.pipe()
        self.addCleanup(os.close, theirs)
        begins = "import select\nset = select.epoll()\nset.register(0, select.EPOLLIN)"
        with os.fdopen(ours) as stdin:
            _, error = self.waits(begins, "", code=78, stdin=stdin)
        self.assertIn(b"start the program with a pipe or a terminal there", error)

    def test_many_pairs(self):
        """A restart has room for copies of all sockets and pipes, with 800 of 1000 in use."""
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (1000, limits[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        begins = (
            "import resource, socket\npairs = [socket.socketpair() for i in range(270)]\n"
            "pipes = [os.pipe() for i in range(130)]\n"
            "for i, (a, b) in enumerate(pairs): a.sendall(b'%d' % i)\n"
            "for i, (r, w) in enumerate(pipes): os.write(w, b'%d' % i)"
        )
        goes_on = (
            "print([int(b.recv(9)) for a, b in pairs] == list(range(270)),\n"
            "      [int(os.read(r, 9)) for r, w in pipes] == list(range(130)),\n"
            "      resource.getrlimit(resource.RLIMIT_NOFILE)[0], flush=True)"
        )
        self.assertEqual(self.waits(begins, goes_on), (b"True True 1000\n", b""))

    def test_timer_at_a_moment(self):
        """On the wall clock the time without the program counts, on other clocks it does not."""
        begins = (
            "import ctypes, select, struct, time\nlibc = ctypes.CDLL(None)\n"
            "def timer(clock, left_s):\n"
            "  fd = libc.timerfd_create(clock, 0)\n"
            "  at = time.clock_gettime_ns(clock) + int(left_s * 1e9)\n"
            "  spec = struct.pack('4q', 0, 0, at // 10**9, at % 10**9)\n"
            "  libc.timerfd_settime(fd, 1, spec, None)\n  return fd\n"
            "wall, never, since_boot = timer(0, 2), timer(0, 3600), timer(1, 3600)"
        )
        goes_on = (
            "print(select.select([wall, never, since_boot], [], [], 1)[0] == [wall], flush=True)"
        )
        self.assertEqual(self.waits(begins, goes_on, dead_s=2), (b"True\n", b""))

    def test_socket_whose_other_end_is_closed(self):
        """What was in it comes, and then its end; an error where something was left unread."""
        begins = (
            "import socket\na, b = socket.socketpair()\nb.sendall(b'last')\nb.close()\n"
            "c, d = socket.socketpair()\nc.sendall(b'unread')\nd.close()\n"
            "e, f = socket.socketpair(type=socket.SOCK_SEQPACKET)\nf.close()"
        )
        goes_on = (
            "got = [a.recv(9), a.recv(9), e.recv(9)]\n"
            "try: c.recv(9)\nexcept ConnectionResetError: got.append(c.recv(9))\n"
            "try: a.send(b'x')\nexcept BrokenPipeError: print(got, flush=True)"
        )
        self.assertEqual(self.waits(begins, goes_on), (b"[b'last', b'', b'', b'']\n", b""))

    def test_socket_that_waits_for_some_time(self):
        """With a timeout the kernel does not restart its call after a signal; the boot program
        does.
        """
        begins = (
            "import ctypes, socket, struct, threading\na, b = socket.socketpair()\n"
            "b.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack('2q', 3600, 0))\n"
            "libc, room, got = ctypes.CDLL(None), ctypes.create_string_buffer(9), []\n"
            "waits = lambda: got.append(libc.recv(b.fileno(), room, 9, 0))\n"
            "thread = threading.Thread(target=waits)\nthread.start()\n"
            "where = f'/proc/self/task/{thread.native_id}/syscall'\n"
            "while not open(where).read().startswith('45 '): pass"
        )
        goes_on = "a.send(b'x')\nthread.join()\nprint(got, flush=True)"
        self.assertEqual(self.waits(begins, goes_on), (b"[1]\n", b""))

    def test_options_of_sockets(self):
        begins = (
            "import socket, struct\na, b = socket.socketpair()\n"
            "a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)\n"
            "b.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 9000)\n"
            "b.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)\n"
            "b.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack('2q', 3, 500000))\n"
            "names = ('SNDBUF', 'RCVBUF', 'PASSCRED', 'RCVTIMEO', 'SNDTIMEO', 'RCVLOWAT')\n"
            "options = lambda: [one.getsockopt(socket.SOL_SOCKET, getattr(socket, f'SO_{name}'),\n"
            "                                  16) for one in (a, b) for name in names]\n"
            "were = options()"
        )
        goes_on = "print(options() == were, flush=True)"
        self.assertEqual(self.waits(begins, goes_on), (b"True\n", b""))

    def test_its_own_files_of_proc(self):
        """Their names have the process's id, and the process that goes on has another one."""
        begins = (
            "status = open('/proc/self/status')\n"
            "folder = os.open('/proc/self/fd', os.O_RDONLY)"
        )
        goes_on = (
            "lines = dict(line.split(':') for line in status)\n"
            "assert int(lines['Pid']) == os.getpid()\nassert '1' in os.listdir(folder)"
        )
        self.waits(begins, goes_on)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
