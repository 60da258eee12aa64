"""`backstay run --transparent`: standard output and error under any numbers that a program has.

Each version is requested, and each step of the program waits for a file; nothing depends on times.
"""

import os
import shlex
import signal
import socket
import subprocess

import pytest
from conftest import PROGRAM
from processes import wait_for
from ranks import HERE, line
from transparent import (  # noqa: F401 (two are fixtures)
    STARTED, kill_job, nothing_is_left, processes_of, program, seed)

BEGIN = """
import os, sys, time
def step(name):
    open(f"has.{name}", "a").close()
    while not os.path.exists(name):
        time.sleep(0.01)
"""
# It writes "one", is saved, writes "two", is killed, and writes "two" and "three".
WRITES = BEGIN + """
def say(what):
    for number in sys.argv[1]:
        os.write(int(number), f"{number} {what}\\n".encode())
say("one")
step("saved")
say("two")
step("written")
say("three")
"""
# How a shell starts it, and where what it writes to each number goes.
REDIRECTED = {
    "2>&1": {1: "out", 2: "out"},
    "1>&2": {1: "err", 2: "err"},
    "3>&1 1>&2 2>&3 3>&-": {1: "err", 2: "out"},
    "3>&1": {1: "out", 2: "err", 3: "out"},
    "4>&2 2>&1": {1: "out", 2: "out", 4: "err"},
    "3>&1 >own": {1: "own", 2: "err", 3: "out"},
    "3>&1 1>&-": {2: "err", 3: "out"},
    "3>>/dev/stdout >&2": {1: "err", 2: "err", 3: "out"},
}
# What it opens once more has an offset of its own, so all others have to append.
APPENDS = {**REDIRECTED, "3>>/dev/stderr 2>&1": {1: "out", 2: "out", 3: "err"}}


def pair():
    return tuple(one.detach() for one in socket.socketpair())


def said(where, name, *texts):
    """What it writes there."""
    return [f"{number} {text}" for text in texts for number in where if where[number] == name]


class Outputs:
    """Two files, opened in this mode; None: two pipes; "socket": two pairs of sockets."""

    def __init__(self, world, mode):
        self.paths = [world.folder / name for name in ("out", "err")]
        self.ends = [pair() if mode == "socket" else os.pipe() if mode is None else (None, os.open(
            path, os.O_WRONLY | os.O_CREAT | (os.O_APPEND if mode == "a" else os.O_TRUNC), 0o644))
            for path in self.paths]

    def start(self, world, where, redirected, retries=0, before=()):
        words = [*program(world, WRITES), "".join(map(str, where))]
        shell = ["sh", "-c", f"exec {shlex.join(map(str, words))} {redirected}"]
        running = subprocess.Popen(
            list(map(str, [PROGRAM, "run", "--transparent", "--job", "app", "--retries", retries,
                           "--", *before, *shell])),
            env=world.env, cwd=world.folder, stdin=subprocess.DEVNULL,
            stdout=self.ends[0][1], stderr=self.ends[1][1])
        for _, end in self.ends:
            os.close(end)
        STARTED.append(running)
        return running

    def told(self):
        """Both, as lines: at the end of the program, when no process has a pipe open any more."""
        texts = []
        for path, (end, _) in zip(self.paths, self.ends, strict=True):
            if end is None:
                texts.append(path.read_bytes())
            else:
                with open(end, "rb") as file:
                    texts.append(file.read())
        assert not any(b"\0" in text for text in texts), texts
        return [text.decode().splitlines() for text in texts]


def come_to(world, running, step):
    wait_for(lambda: running.poll() is not None or (world.folder / f"has.{step}").exists(), step)
    assert running.poll() is None


def come_behind_a_version(world, running):
    come_to(world, running, "saved")
    done = world.run("checkpoint", "app", "--wait")
    assert done.returncode == 0, done.stderr
    (world.folder / "saved").touch()
    come_to(world, running, "written")


@pytest.fixture
def asked(world):
    world.env.update(BACKSTAY_CHECKPOINT_POLICY="request", BACKSTAY_AGENT_IDLE_EXIT_S="60")
    return world


def of_the_program(lines):
    return [one for one in lines if not one.startswith("backstay")]


@pytest.mark.parametrize("mode, redirected", [
    *(("w", one) for one in REDIRECTED), *((mode, one) for mode in ("a", None) for one in APPENDS),
    *(("socket", one) for one in REDIRECTED if "/dev" not in one)])
def test_a_killed_program_writes_on_where_it_did(asked, redirected, mode):
    """Standard output as if nothing had happened, and nothing of standard error is lost."""
    where = APPENDS[redirected]
    outputs = Outputs(asked, mode)
    running = outputs.start(asked, where, redirected, retries=1)
    come_behind_a_version(asked, running)
    killed = processes_of(asked)
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in killed), "its end")
    (asked.folder / "written").touch()
    assert running.wait(timeout=60) == 0
    out, err = outputs.told()
    twice = ("one", "two", "two", "three")
    assert of_the_program(out) == said(
        where, "out", *(twice if mode in (None, "socket") else ("one", "two", "three"))), (out, err)
    assert of_the_program(err) == said(where, "err", *twice), (out, err)
    assert sum("restart 1 of 1 from version 1" in one for one in err) == 1, err
    if "own" in where.values():
        own = (asked.folder / "own").read_text().splitlines()
        assert own == said(where, "own", "one", "two", "three")


@pytest.mark.parametrize("redirected", REDIRECTED)
@pytest.mark.parametrize("mode, again", [
    ("w", "w"), ("a", "a"), (None, None), ("w", None), (None, "w")])
def test_the_command_given_again_has_its_own_outputs(asked, redirected, mode, again):
    where = REDIRECTED[redirected]
    outputs = Outputs(asked, mode)
    running = outputs.start(asked, where, redirected)
    come_behind_a_version(asked, running)
    kill_job(asked, running)
    (asked.folder / "written").touch()
    before = outputs.told()
    outputs = Outputs(asked, again)
    running = outputs.start(asked, where, redirected)
    code = running.wait(timeout=60)
    out, err = outputs.told()
    assert code == 0, err
    kept = again == "a"
    assert of_the_program(out) == said(where, "out", *["one"] * kept, "two", "three"), (out, err)
    assert of_the_program(err) == said(where, "err", *["one", "two"] * kept, "two", "three")
    assert err[:len(before[1]) * kept] == before[1][:len(before[1]) * kept], (before, err)


OFFSET = BEGIN + """
apart = os.open("/dev/stdout", os.O_WRONLY)
os.lseek(apart, 100, 0)
def say(text):
    for number in (1, apart):
        os.write(number, text)
say(b"one\\n")
step("saved")
say(b"two\\n")
step("written")
say(b"three\\n")
"""


def test_an_output_that_is_open_once_more_keeps_its_own_offset(asked):
    out = asked.folder / "out"
    with open(out, "w") as file:
        running = subprocess.Popen(
            list(map(str, [PROGRAM, "run", "--transparent", "--job", "app", "--",
                           *program(asked, OFFSET)])),
            env=asked.env, cwd=asked.folder, stdin=subprocess.DEVNULL, stdout=file,
            stderr=subprocess.DEVNULL)
    STARTED.append(running)
    come_behind_a_version(asked, running)
    for pid in processes_of(asked):
        os.kill(pid, signal.SIGKILL)
    (asked.folder / "written").touch()
    assert running.wait(timeout=60) == 0
    text = b"one\ntwo\nthree\n"
    assert out.read_bytes() == text + bytes(100 - len(text)) + text


@pytest.mark.skipif(not HERE, reason="no launcher is installed")
@pytest.mark.parametrize("launcher", HERE)
def test_a_rank_writes_on_where_it_did(asked, launcher):
    where = REDIRECTED["2>&1"]
    outputs = Outputs(asked, "a")
    before = line(launcher, 1)
    running = outputs.start(asked, where, "2>&1", before=before)
    come_behind_a_version(asked, running)
    kill_job(asked, running)
    (asked.folder / "written").touch()
    before_out = outputs.told()[0]
    outputs = Outputs(asked, None)
    running = outputs.start(asked, where, "2>&1", before=before)
    code = running.wait(timeout=60)
    out, err = outputs.told()
    assert code == 0 and before_out, err
    assert out == said(where, "out", "two", "three"), (out, err)
    assert of_the_program(err) == [], err
