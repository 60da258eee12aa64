#!/usr/bin/env python3
"""Programs that are cut, killed and brought back go on as if nothing had happened.

Usage: restore_test.py BOOT PROGRAMS_FOLDER [TEST ...]
BACKSTAY_SEED repeats a run; BACKSTAY_LIVES sets how often the test tries each program.
The test cuts each life at a random moment, and the life ends at a random moment after its cut.
The output of all lives together is that of an undisturbed run.
"""

import ctypes
import errno
import gzip
import hashlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import booted

PROGRAMS = Path(sys.argv[2]).resolve()
TRIES = int(os.environ.get("BACKSTAY_LIVES", "3"))
PYTHON = "/usr/bin/python3"
INPUT = os.path.realpath(PYTHON)  # a file that is large enough and does not change


def unlimited_stack():
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    resource.setrlimit(resource.RLIMIT_STACK, (hard, hard))


def fixed_addresses():
    ctypes.CDLL(None).personality(0x0040000)  # ADDR_NO_RANDOMIZE


class Lives(unittest.TestCase):
    """What the tests share."""

    def setUp(self):
        self.folders = tempfile.TemporaryDirectory()
        self.addCleanup(self.folders.cleanup)
        self.number = 0

    def folder(self):
        self.number += 1
        path = Path(self.folders.name) / str(self.number)
        path.mkdir()
        return path

    def go_on(self, command, tries=TRIES, **kwargs):
        code, out = booted.native(command, cwd=self.folder())
        restarts = 0
        for _ in range(tries):
            got, text, count = booted.lives(command, cwd=self.folder(), **kwargs)
            self.assertEqual((got, text.decode()), (code, out.decode()), f"after {count} restarts")
            restarts += count
        self.assertGreater(restarts, 0, "no cut fell into the program's life")


class Restore(Lives):
    def test_single(self):
        self.go_on([PROGRAMS / "image_single"], first_s=(0.02, 0.1))

    def test_program_at_a_fixed_address(self):
        self.go_on([PROGRAMS / "image_fixed"], tries=1, first_s=(0.02, 0.1))

    def test_unlimited_stack(self):
        """The kernel then puts mappings from low addresses upwards."""
        self.go_on(
            [PROGRAMS / "image_memory", INPUT],
            tries=1,
            first_s=(0.02, 0.1),
            preexec_fn=unlimited_stack,
        )

    def test_without_address_randomisation(self):
        self.go_on(
            [PROGRAMS / "image_memory", INPUT],
            tries=1,
            first_s=(0.02, 0.1),
            preexec_fn=fixed_addresses,
        )

    def test_threads(self):
        self.go_on([PROGRAMS / "image_threads"], first_s=(0.02, 0.08))

    def test_memory(self):
        self.go_on([PROGRAMS / "image_memory", INPUT], first_s=(0.02, 0.1))

    def test_memory_on_older_kernels(self):
        self.go_on(
            [PROGRAMS / "image_memory", INPUT], tries=1, first_s=(0.02, 0.1), options=["--no-scan"]
        )

    def test_files(self):
        self.go_on([PROGRAMS / "image_files", INPUT], first_s=(0.02, 0.1))

    def test_python(self):
        script = """
import hashlib, threading, time
done = threading.Event()
lock = threading.RLock()
beats = 0
def beat():
    global beats
    while not done.wait(0.001):
        with lock:
            beats += 1
thread = threading.Thread(target=beat)
thread.start()
value = hashlib.sha256()
for step in range(40):
    with lock:
        for i in range(3000):
            value.update(str((step, i)).encode())
    print(step, value.hexdigest(), flush=True)
    time.sleep(0.005)
done.set()
thread.join()
print(beats > 5)
"""
        self.go_on([PYTHON, "-c", script], tries=2, first_s=(0.05, 0.2))

    def test_personality(self):
        """Memory that can be read can be executed, as Lisps ask for it, also after a restart."""
        script = """
import ctypes, re, threading, time
libc = ctypes.CDLL(None)
libc.mmap64.restype = ctypes.c_size_t
libc.mmap64.argtypes = [ctypes.c_size_t] * 2 + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.personality(0x0400000)  # READ_IMPLIES_EXEC
def all_that_is_told():
    at = libc.mmap64(0, 4096, 1, 0x22, -1, 0)  # PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS
    while True:  # a restart among the reads leaves parts of two maps
        for line in open("/proc/self/maps"):
            area = re.match("([0-9a-f]+)-([0-9a-f]+) (....) ", line)
            if area and int(area[1], 16) <= at < int(area[2], 16):
                return hex(libc.personality(-1)), area[3]
told = []
def tell():
    for step in range(40):
        told.append(all_that_is_told())
        time.sleep(0.01)
thread = threading.Thread(target=tell)
thread.start()
for step in range(40):
    print(step, all_that_is_told(), flush=True)
    time.sleep(0.01)
thread.join()
print(len(told), set(map(str, told)))
"""
        self.go_on([PYTHON, "-c", script], tries=2, first_s=(0.1, 0.3))

    def test_the_heap_without_address_randomisation(self):
        """It begins behind the program, as Lisps expect it that load their old memory."""
        script = """
import time
maps = [line.split() for line in open("/proc/self/maps")]
heap = next(i for i, words in enumerate(maps) if words[-1] == "[heap]")
print(maps[heap][0].split("-")[0] == maps[heap - 1][0].split("-")[1], flush=True)
for step in range(40):
    print(step, flush=True)
    time.sleep(0.01)
"""
        got = booted.native([PYTHON, "-c", script], preexec_fn=fixed_addresses)
        self.assertTrue(got[1].startswith(b"True\n"), got)
        code, text, restarts = booted.lives(
            [PYTHON, "-c", script],
            cwd=self.folder(),
            first_s=(0.1, 0.3),
            preexec_fn=fixed_addresses,
        )
        self.assertEqual((code, text), got, f"after {restarts} restarts")

    def test_python_with_numpy(self):
        python = os.environ.get("BACKSTAY_NUMPY_PYTHON", PYTHON)
        script = """
import hashlib, time
import numpy as np
a = np.random.default_rng(1).standard_normal((200, 200))
for step in range(30):
    a = a @ a
    a /= np.abs(a).max()
    print(step, hashlib.md5(np.round(a, 6).tobytes()).hexdigest(), flush=True)
    time.sleep(0.01)
"""
        if booted.native([python, "-c", "import numpy"], stderr=subprocess.DEVNULL)[0] != 0:
            self.skipTest("numpy is not installed")
        self.go_on([python, "-c", script], tries=2, first_s=(0.2, 0.4))

    def test_gzip_of_a_file(self):
        content = b"".join(
            hashlib.sha512(str(i).encode()).hexdigest().encode() for i in range(100_000)
        )
        folder = self.folder()
        (folder / "file").write_bytes(content)
        code, _, restarts = booted.lives(
            ["/bin/gzip", "-k", "file"], cwd=folder, first_s=(0.02, 0.1)
        )
        self.assertEqual(code, 0)
        self.assertGreater(restarts, 0)
        with gzip.open(folder / "file.gz") as file:
            self.assertTrue(file.read() == content, "the file differs")

    def cut_and_kill(self, start):
        """A short program may end before its cut on a busy machine: then it is started again."""
        for _ in range(10):
            life = start()
            if life.cut() is not None:
                return life.kill()
        return self.fail("the program always ended before the cut")

    def test_another_kernels_vdso(self):
        """The vDSO's functions enter the kernel by system calls.

        The program's pointers to them stay good.
        """
        folder = self.folder()
        image = folder / "image"
        code, out = booted.native([PROGRAMS / "image_signals"])

        def first():
            with open(folder / "out", "wb") as file:
                return booted.Booted(["--image", image, "--", PROGRAMS / "image_signals"], out=file)

        self.cut_and_kill(first)
        subprocess.run([PROGRAMS / "image_mend", image, "vdso"], check=True)
        for _ in range(2):
            self.cut_and_kill(lambda: booted.Booted(["--image", image, "--restore", image]))
        life = booted.Booted(["--restore", image])
        self.assertEqual((life.end(), (folder / "out").read_bytes()), (code, out))

    def test_ordinary_user(self):
        if os.geteuid() != 0:
            self.skipTest("is an ordinary user already")
        folder = self.folder()
        for path in (folder, Path(self.folders.name)):
            path.chmod(0o777)
        boot = folder / "backstay-boot"
        program = folder / "program"
        shutil.copy(booted.BOOT, boot)
        shutil.copy(PROGRAMS / "image_threads", program)
        expected = booted.native([program])
        before, booted.BOOT = booted.BOOT, str(boot)
        try:
            image = folder / "image"
            with open(folder / "out", "wb") as out:
                os.fchmod(out.fileno(), 0o666)
                life = booted.Booted(
                    ["--image", image, "--", program],
                    out=out,
                    cwd=folder,  # that of the build may be closed to this user
                    user=65534,
                    group=65534,
                    extra_groups=[],
                )
            self.assertIsNotNone(life.cut())
            life.kill()
            life = booted.Booted(
                ["--restore", image], cwd="/", user=65534, group=65534, extra_groups=[]
            )
            self.assertEqual((life.end(), (folder / "out").read_bytes()), expected)
        finally:
            booted.BOOT = before


class RestoreSignals(Lives):
    def test_signals(self):
        self.go_on([PROGRAMS / "image_signals"], first_s=(0.02, 0.15))

    def test_queued_signals(self):
        """They come in their order, with what their senders have told."""
        self.go_on([PROGRAMS / "image_queued"], first_s=(0.02, 0.15))

    def test_cuts_alone(self):
        """Nothing is taken out of the queues, and no signal of a timer comes twice."""
        for name in ("image_queued", "image_timers", "image_locks"):
            with open(self.folder() / "out", "w+b") as out:
                image = self.folder() / "image"
                life = booted.Booted(["--image", image, "--", PROGRAMS / name], out=out)
                # The program sleeps 10 ms at a time. It must run between two cuts: cuts that follow
                # at once would leave it no time to get on.
                while life.cut() is not None:
                    time.sleep(random.uniform(0, 0.03))
                out.seek(0)
                got = life.end(), out.read()
            self.assertEqual(got, booted.native([PROGRAMS / name]), name)

    def wait_for_call(self, life, number):
        while Path(f"/proc/{life.process.pid}/syscall").read_text().split()[0] != number:
            self.assertIsNone(life.process.poll())

    def stop_and_continue(self, life):
        """Ctrl-Z and fg."""
        pid = life.process.pid
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED)
        os.kill(pid, signal.SIGCONT)
        self.wait_for_call(life, "219")  # restart_syscall

    def test_a_sleep_behind_a_stop(self):
        """A cut follows: the program sleeps on."""
        life = booted.Booted(["--image", self.folder() / "image", "--", "/bin/sleep", "2"])
        self.wait_for_call(life, "230")  # clock_nanosleep
        self.stop_and_continue(life)
        self.assertIsNotNone(life.cut())
        self.assertEqual(life.end(), 0)

    def test_a_sleep_behind_a_stop_after_a_restart(self):
        """It is a poll then, of which the boot program knows nothing by itself."""
        image = self.folder() / "image"
        sleep = "import ctypes; exit(ctypes.CDLL(None).usleep(3000000))"
        life = booted.Booted(["--image", image, "--", PYTHON, "-c", sleep])
        self.wait_for_call(life, "230")
        self.stop_and_continue(life)
        for _ in range(2):
            self.assertIsNotNone(life.cut())
        life.kill()
        life = booted.Booted(["--image", image, "--restore", image])
        self.wait_for_call(life, "7")
        self.stop_and_continue(life)
        self.assertIsNotNone(life.cut())
        self.wait_for_call(life, "7")
        self.assertEqual(life.end(), 0)

    def test_locks(self):
        """Held mutexes of every kind that knows its owner."""
        self.go_on([PROGRAMS / "image_locks"], first_s=(0.02, 0.15))

    def test_timers(self):
        """POSIX timers of every kind, whatever the ids of the threads that they tell."""
        self.go_on([PROGRAMS / "image_timers"], first_s=(0.02, 0.15))

    def test_signals_where_nobody_may_look_at_them(self):
        """Those that carry nothing come back, and those of timers."""
        no_trace = booted.forbids(101, errno.EPERM)
        for name in ("image_signals", "image_timers"):
            self.go_on([PROGRAMS / name], tries=1, first_s=(0.02, 0.15), preexec_fn=no_trace)


if __name__ == "__main__":
    booted.seed()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
