"""A program under the boot program: started, cut, killed, brought back. Standard library only."""

import ctypes
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BOOT = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "backstay-boot"
ANSWER_S = 20
END_S = 60


def seed() -> int:
    """Printed, and taken back from BACKSTAY_SEED."""
    value = int(os.environ.get("BACKSTAY_SEED", time.time_ns() % 1_000_000))
    print(f"BACKSTAY_SEED={value}", flush=True)
    random.seed(value)
    return value


class Refused(Exception):
    pass


class Booted:
    """One life of a program.

    The boot program takes `options`; the program writes its output to the file `out`.
    """

    def __init__(self, options, out=None, stdin=subprocess.DEVNULL, pass_fds=(), **kwargs):
        ours, theirs = socket.socketpair()
        self.control = ours
        self.control.settimeout(ANSWER_S)
        with theirs:
            number = theirs.fileno()
            self.process = subprocess.Popen(
                [BOOT, "--control", str(number), *map(str, options)],
                pass_fds=[number, *pass_fds],
                stdin=stdin,
                stdout=out,
                **kwargs,
            )

    def cut(self):
        """Cut the program and return what the boot program measured.

        The call returns None where the program had ended. Where the boot program
        refuses, the call raises Refused with the reason.
        """
        try:
            self.control.sendall(b"c")
            answer = self.control.makefile().readline()
        except (BrokenPipeError, ConnectionResetError):
            return None
        if answer.startswith("refused "):
            raise Refused(answer.removeprefix("refused ").strip())
        if answer == "again\n":
            return self.cut()
        if not answer:
            return None
        names = ("bytes", "pages", "stopped_us", "agreeing_us", "describing_us")
        return dict(zip(names, map(int, answer.split()[1:]), strict=True))

    def kill(self):
        self.control.close()
        self.process.kill()
        return self.process.wait()

    def end(self):
        try:
            return self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.control.close()


def forbids(call, error, argument=None):
    """For preexec_fn: the kernel refuses this system call, with this first argument alone."""
    if argument is None:
        steps = [(0x20, 0, 0, 0), (0x15, 0, 1, call)]
    else:
        steps = [(0x20, 0, 0, 0), (0x15, 0, 3, call), (0x20, 0, 0, 16), (0x15, 0, 1, argument)]
    steps += [(0x06, 0, 0, 0x50000 | error), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(
        struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code))
    )
    libc = ctypes.CDLL(None)

    def forbid():
        assert code and libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
        assert libc.prctl(22, 2, program) == 0  # PR_SET_SECCOMP

    return forbid


def native(command, **kwargs):
    """(code, output) of an undisturbed run."""
    done = subprocess.run(
        list(map(str, command)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        timeout=END_S,
        **kwargs,
    )
    return done.returncode, done.stdout


def lives(
    command, generations=3, first_s=(0.05, 0.3), after_s=(0.0, 0.1), cwd=None, options=(), **kwargs
):
    """Runs it with cuts and kills at random moments. Returns (code, output, number of restarts)."""
    with tempfile.TemporaryDirectory() as scratch:
        out_path = Path(scratch) / "out"
        image = Path(scratch) / "image"
        with open(out_path, "wb") as out:
            life = Booted([*options, "--image", image, "--", *command], out=out, cwd=cwd, **kwargs)
        restarts = 0
        for _ in range(generations):
            time.sleep(random.uniform(*first_s))  # a random moment; nothing is waited for
            if life.cut() is None:
                break
            time.sleep(random.uniform(*after_s))
            life.kill()
            life = Booted([*options, "--image", image, "--restore", image], cwd="/", **kwargs)
            restarts += 1
        return life.end(), out_path.read_bytes(), restarts
