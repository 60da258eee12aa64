#!/usr/bin/env python3
"""The boot program refuses by name what an image cannot hold or a machine cannot bring back.

A refusal costs the program nothing.

Usage: refuse_test.py BOOT PROGRAMS_FOLDER
"""

import errno
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import booted

PROGRAMS = Path(sys.argv[2]).resolve()
PYTHON = "/usr/bin/python3"
REFUSED = 78


class Refusing(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)
        self.image = self.scratch / "image"

    def cut_refused(self, setup, words, **kwargs):
        """The program does `setup`, is to be cut, and goes on all the same."""
        script = (
            f"import mmap, os, socket, subprocess\n{setup}\nprint('ready', flush=True)\n"
            "while not os.path.exists('go'): pass\nprint('went on')"
        )
        (self.scratch / "go").unlink(missing_ok=True)
        life = booted.Booted(
            ["--image", self.image, "--", PYTHON, "-c", script],
            out=subprocess.PIPE,
            cwd=self.scratch,
            **kwargs,
        )
        self.addCleanup(life.kill)
        with life.process.stdout as out:
            self.assertEqual(out.readline(), b"ready\n")
            with self.assertRaises(booted.Refused) as caught:
                life.cut()
            self.assertIn(words, str(caught.exception))
            (self.scratch / "go").touch()
            self.assertEqual(out.read(), b"went on\n")
        self.assertEqual(life.end(), 0)
        self.assertFalse(self.image.exists())
        self.assertEqual([path.name for path in self.scratch.glob("image*")], [])


class RefuseDescriptors(Refusing):
    def test_socket(self):
        self.cut_refused("s = socket.socket()", "is a socket whose other end")
        one_end = "a, b = socket.socketpair()\n"
        watched = "import select\ne = select.epoll()\ns = socket.socket()\ne.register(s)"
        self.cut_refused(watched, "is a socket whose other end")
        messages = "a, b = socket.socketpair(type=socket.SOCK_DGRAM)\n"
        for message in ("a.send(b'x')", "a.send(b'')"):
            self.cut_refused(messages + message, "is a socket in which messages wait")
        full = one_end + "a.setblocking(False)\na.send(b'x' * 131073)"
        self.cut_refused(full, "is a socket in which more than 128 KiB wait")
        handed = one_end + "socket.send_fds(a, [b'x'], [0])"
        self.cut_refused(handed, "is a socket in which descriptors")

    def test_pipe_to_another_process(self):
        ours, theirs = os.pipe()
        self.addCleanup(os.close, theirs)
        with os.fdopen(ours):
            words = f"descriptor {ours} is a pipe from another process"
            self.cut_refused("", words, pass_fds=[ours])

    def test_device(self):
        self.cut_refused("d = os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY)", "/dev/p")

    def test_file_of_another_process(self):
        status = f"/proc/{os.getpid()}/status"
        self.cut_refused(f"s = open('{status}')", f"is {status}: it cannot be saved")

    def test_event_descriptor(self):
        inotify = "import ctypes\ni = ctypes.CDLL(None).inotify_init()"
        self.cut_refused(inotify, "anon_inode:inotify")
        # What an epoll set watches is closed, and a thread with descriptors of its own has it open.
        gone = (
            "import ctypes, select, threading\ne = select.epoll()\nr, w = os.pipe()\n"
            "e.register(r, select.EPOLLIN)\nholds = threading.Event()\n"
            "def hold():\n  ctypes.CDLL(None).unshare(0x400)\n  holds.set()\n"
            "  while not os.path.exists('go'): pass\n"
            "threading.Thread(target=hold).start()\nholds.wait()\nos.close(r)"
        )
        self.cut_refused(gone, "which is closed or not the program's")
        ours, theirs = os.pipe()
        self.addCleanup(os.close, ours)
        with os.fdopen(theirs):
            away = f"import select\ne = select.epoll()\ne.register({theirs}, select.EPOLLOUT)"
            self.cut_refused(away, f"descriptor {theirs}, a pipe to another", pass_fds=[theirs])


    def test_more_files_without_a_name_than_a_restart_can_make(self):
        few = "more than 1024 files without a name"
        words = f"{few} (removed ones, memory files, shared memory) are"
        mapped = "m = [mmap.mmap(-1, 4096) for _ in range({})]\n"
        self.cut_refused(mapped.format(1025), f"{words} mapped")
        if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 1100:
            self.skipTest("so many descriptors are not allowed here")
        raised = (
            "import resource\nmost = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))\n"
            "f = [os.memfd_create('x') for _ in range({})]\n"
        )
        self.cut_refused(raised.format(1025), f"{words} open")


class Refuse(Refusing):
    def test_child(self):
        sleep = "child = subprocess.Popen(['sleep', '5'], stdin=subprocess.DEVNULL)"
        self.cut_refused(sleep, "(sleep) runs")
        ended = f"{sleep}; child.kill(); os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)"
        self.cut_refused(ended, "has ended, and it has not waited for it")

    def test_thread_that_blocks_every_signal(self):
        """By a system call of its own: libc lets no program block 33. Later it can be cut."""
        script = (
            "import ctypes, os\ncall = ctypes.CDLL(None).syscall\n"
            "mask = ctypes.c_uint64(2**64 - 1)\n"
            "call(14, 2, ctypes.byref(mask), None, 8)\nprint('blocked', flush=True)\n"
            "while not os.path.exists('go'): pass\nmask.value = 0\n"
            "call(14, 2, ctypes.byref(mask), None, 8)\n"
            "print('free', flush=True)\nwhile not os.path.exists('end'): pass\nprint('went on')"
        )
        life = booted.Booted(
            ["--image", self.image, "--", PYTHON, "-c", script],
            out=subprocess.PIPE,
            cwd=self.scratch,
        )
        self.addCleanup(life.kill)
        with life.process.stdout as out:
            self.assertEqual(out.readline(), b"blocked\n")
            with self.assertRaises(booted.Refused) as caught:
                life.cut()
            self.assertIn(f"thread {life.process.pid} does not stop", str(caught.exception))
            (self.scratch / "go").touch()
            self.assertEqual(out.readline(), b"free\n")
            self.assertIsNotNone(life.cut())
            (self.scratch / "end").touch()
            self.assertEqual(out.read(), b"went on\n")
        self.assertEqual(life.end(), 0)

    def test_first_thread_that_has_ended(self):
        script = (
            "import ctypes, os, threading\ndef wait():\n  while not os.path.exists('go'): pass\n"
            "  print('went on', flush=True)\n  os._exit(0)\nthreading.Thread(target=wait).start()\n"
            "print('ready', flush=True)\nctypes.CDLL(None).syscall(60, 0)"
        )
        life = booted.Booted(
            ["--image", self.image, "--", PYTHON, "-c", script],
            out=subprocess.PIPE,
            cwd=self.scratch,
        )
        self.addCleanup(life.kill)
        with life.process.stdout as out:
            self.assertEqual(out.readline(), b"ready\n")
            while "State:\tZ" not in Path(f"/proc/{life.process.pid}/status").read_text():
                pass
            with self.assertRaises(booted.Refused) as caught:
                life.cut()
            self.assertIn("first thread has ended", str(caught.exception))
            (self.scratch / "go").touch()
            self.assertEqual(out.read(), b"went on\n")
        self.assertEqual(life.end(), 0)

    def test_signal_whose_value_cannot_be_read(self):
        waits = "import signal\nsignal.pthread_sigmask(0, [40])\nos.kill(os.getpid(), 40)"
        no_trace = booted.forbids(101, errno.EPERM)
        self.cut_refused(waits, "a real-time signal waits", preexec_fn=no_trace)

    TIMER = (
        "import ctypes\nto = ctypes.byref(ctypes.c_void_p())\n"
        "assert ctypes.CDLL(None).timer_create(ctypes.c_int({}), None, to) == 0"
    )

    def test_timer_that_cannot_come_back(self):
        clock = ~os.getpid() << 3 | 2  # of another process's processor time
        self.cut_refused(self.TIMER.format(clock), "another process's processor time")
        script = f"{self.TIMER.format(1)}\nprint('ready', flush=True)\nwhile True: pass"
        life = booted.Booted(
            ["--image", self.image, "--", PYTHON, "-c", script], out=subprocess.PIPE
        )
        self.addCleanup(life.kill)
        with life.process.stdout as out:
            self.assertEqual(out.readline(), b"ready\n")
            self.assertIsNotNone(life.cut())
        life.kill()
        no_timer = booted.forbids(222, errno.EAGAIN)
        self.restart_refused("POSIX timer 0 cannot be made again", preexec_fn=no_timer)

    def test_mapped_file_that_is_replaced(self):
        setup = (
            "open('data', 'wb').write(bytes(8192))\nf = open('data', 'r+b')\n"
            "m = mmap.mmap(f.fileno(), 0)\nf.close()\n"
            "open('new', 'wb').write(bytes(8192))\nos.rename('new', 'data')"
        )
        # The old file has no name any more, so the kernel shows it as removed; the boot program
        # saves the file's memory as shared memory.
        script = (
            f"import mmap, os\n{setup}\nprint('ready', flush=True)\n"
            "while not os.path.exists('go'): pass\nprint(m[0])"
        )
        life = booted.Booted(
            ["--image", self.image, "--", PYTHON, "-c", script],
            out=subprocess.PIPE,
            cwd=self.scratch,
        )
        self.addCleanup(life.kill)
        with life.process.stdout as out:
            self.assertEqual(out.readline(), b"ready\n")
            self.assertIsNotNone(life.cut())
            (self.scratch / "go").touch()
            self.assertEqual(out.read(), b"0\n")
        life.end()

    def saved(self, program):
        """An image of the program, which is dead."""
        with open(self.scratch / "out", "wb") as out:
            life = booted.Booted(["--image", self.image, "--", program], out=out, cwd=self.scratch)
            self.addCleanup(life.kill)
        self.assertIsNotNone(life.cut())
        life.kill()

    def restart(self, **kwargs):
        done = subprocess.run(
            [booted.BOOT, "--restore", str(self.image)],
            capture_output=True,
            timeout=booted.END_S,
            **kwargs,
        )
        return done.returncode, done.stderr.decode()

    def restart_refused(self, words, **kwargs):
        code, error = self.restart(**kwargs)
        self.assertEqual(code, REFUSED)
        self.assertTrue(error.startswith("backstay: cannot restart: "), error)
        self.assertIn(words, error)

    def test_changed_program(self):
        program = self.scratch / "program"
        shutil.copy(PROGRAMS / "image_single", program)
        self.saved(program)
        other = self.scratch / "other"
        shutil.copy(PROGRAMS / "image_threads", other)
        os.replace(other, program)
        self.restart_refused(f"{program} is another build")

    def test_missing_program(self):
        program = self.scratch / "program"
        shutil.copy(PROGRAMS / "image_single", program)
        self.saved(program)
        program.unlink()
        self.restart_refused(f"{program} is missing")

    def test_file_that_became_shorter(self):
        script = (
            "import time\nprint('x' * 100, flush=True)\nf = open('data', 'w')\n"
            "f.write('y' * 100)\nf.flush()\ntime.sleep(60)"
        )
        with open(self.scratch / "out", "wb") as out:
            life = booted.Booted(
                ["--image", self.image, "--", PYTHON, "-c", script], out=out, cwd=self.scratch
            )
            self.addCleanup(life.kill)
        while not (self.scratch / "data").exists() or (self.scratch / "data").stat().st_size < 100:
            self.assertIsNone(life.process.poll())
        self.assertIsNotNone(life.cut())
        life.kill()
        os.truncate(self.scratch / "data", 50)
        self.restart_refused("data has become shorter")
        (self.scratch / "data").unlink()
        self.restart_refused("data is missing")

    def test_damaged_image(self):
        self.saved(PROGRAMS / "image_single")
        good = self.image.read_bytes()
        for at, words in (
            (len(good) - 5, "damaged: its footer"),
            (len(good) - 200, "damaged: its table"),
            (len(good) - 62, "no image of a process"),
        ):
            self.image.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
            self.restart_refused(words)
        self.image.write_bytes(good[:100])
        self.restart_refused("no image of a process")
        self.image.unlink()
        self.restart_refused("cannot be read")

    def test_another_processor(self):
        self.saved(PROGRAMS / "image_single")
        # The identity is the first record of the table. The identity's features stand at 144, and
        # the features' checksums follow.
        subprocess.run([PROGRAMS / "image_mend", self.image, "144", "8"], check=True)
        self.restart_refused("this processor lacks features")

    def test_no_place_for_the_image(self):
        life = booted.Booted(
            ["--image", "/nosuch/folder/image", "--", PYTHON, "-c", "import time; time.sleep(60)"]
        )
        self.addCleanup(life.kill)
        with self.assertRaises(booted.Refused) as caught:
            life.cut()
        self.assertIn("/nosuch/folder/image.tmp cannot be made", str(caught.exception))
        life.kill()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
