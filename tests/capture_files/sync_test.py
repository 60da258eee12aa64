#!/usr/bin/env python3
"""fsync of a captured file: local when it returns, and the file stays in memory.

    sync_test.py BACKSTAY FOLDER [--first SEED] [--only NAME]

A crash after it, of program, collector and agent in any mix, or of the node, leaves the file as it
was then, or newer.
"""

import argparse
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from capturing import World, temporary_files  # noqa: E402
from collector_test import need, place_in, start_with  # noqa: E402

MIB = 1 << 20
OLD = b"old" * 1000
# Carries out the words of its standard input, and answers each.
OBEY = """
import os, sys
os.chdir(sys.argv[1])
f = None
for word in sys.stdin:
    verb, *rest = word.split()
    if verb == 'open': f = open(rest[0], 'wb', buffering=0)
    elif verb == 'write': f.write(rest[0].encode() * (int(rest[1]) << 20))
    elif verb == 'sync': os.fsync(f.fileno())
    elif verb == 'data': os.fdatasync(f.fileno())
    elif verb == 'pwritev2': os.pwritev(f.fileno(), [rest[0].encode() * (3 << 20)], 0, os.RWF_SYNC)
    elif verb == 'close': f.close()
    elif verb == 'rename': os.rename(rest[0], rest[1])
    elif verb == 'unlink': os.unlink(rest[0])
    elif verb == 'fork': os.waitpid(os.fork() or os._exit(0), 0)
    elif verb == 'where': print(os.readlink('/proc/self/fd/%d' % f.fileno()), end=' ')
    print('done', flush=True)
"""


class Program:
    """Under `backstay exec`; obeys words."""

    def __init__(self, world, place):
        self.process = subprocess.Popen(
            world.words(place, sys.executable, "-c", OBEY, place), env=world.env, cwd=world.folder,
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)

    def do(self, *words):
        said = ""
        for word in words:
            self.process.stdin.write(word + "\n")
            self.process.stdin.flush()
            said = self.process.stdout.readline()
            need(said.endswith("done\n"), f"{word}: the program said {said!r}")
        return said[:-len("done\n")].strip()

    def end(self):
        self.process.stdin.close()
        need(self.process.wait(timeout=120) == 0, f"the program ended with {self.process}")

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=60)


def versions(world):
    """Those on the node's disk."""
    return sorted(path.parent.name for path in (world.folder / "versions").rglob("commit.local"))


def letters(text):
    return b"".join(letter.encode() * MIB for letter in text)


def need_file(path, wanted, what):
    found = path.read_bytes() if path.exists() else None
    need(found == wanted, f"{what}: {path.name} has "
         f"{None if found is None else (len(found), found[:1], found[-1:])}")


def stays_in_memory(program, folder):
    with World(program) as world, place_in(folder, "memory") as place:
        writer = Program(world, place)
        writer.do("open x", "write a 3", "sync")
        need(len(versions(world)) == 1, f"synced, and on the disk are {versions(world)}")
        need("memfd" in writer.do("where"), "fsync: the file left memory")
        need_file(place / "x", OLD, "open: others see the old file")
        writer.do("write b 1", "data", "write c 1", "sync", "close")
        before = len(versions(world))
        need(before <= 3, f"closed as it was synced, and a version more: {versions(world)}")
        writer.end()
        need_file(place / "x", letters("aaabc"), "closed")
        writer = Program(world, place)
        writer.do("open z", "pwritev2 p")
        need_file(place / "z", b"", "RWF_SYNC: it is at its place")
        need("memfd" in writer.do("where"), "RWF_SYNC: the file left memory")
        writer.do("write q 4", "close")
        writer.end()
        need_file(place / "z", letters("qqqq"), "written after RWF_SYNC")
        need(not temporary_files(place), f"left {temporary_files(place)}")
        need(not list((world.folder / "agent").glob("hold-*")), "a hold was left")
        need("newer file" not in world.log(), f"a version was kept: {world.log()}")
    print("stays in memory; closed as it was synced it is not copied again")


def killed_after(program, folder):
    """The program, and with it collector and agent, or one of them before it."""
    for others in ((), ("backstay-collector",), ("backstayd",),
                   ("backstay-collector", "backstayd")):
        for first in (False, True) if others else (False,):
            case = f"killed: {'first ' if first else ''}{others}"
            with World(program) as world, place_in(folder, "killed") as place:
                writer = Program(world, place)
                writer.do("open x", "write a 3", "sync", "write b 1", "sync", "write c 2")
                if first:
                    for name in others:
                        need(world.kill(name) == 1, f"{case}: {name} was not there")
                    need_file(place / "x", OLD, f"{case}: the program lives")
                writer.kill()
                if not first:
                    for name in others:
                        world.kill(name)
                read = world.run(place, "cat", place / "x", stdout=subprocess.PIPE)
                need(read.stdout in (letters("aaab"), letters("aaabcc")),
                     f"{case}: {len(read.stdout)} bytes")
                need(not temporary_files(place), f"{case}: left {temporary_files(place)}")
    print("killed after fsync: as it was then")


def another_agent(program, folder):
    """One that is started while the program has the file open does not bring it."""
    with World(program) as world, place_in(folder, "agent") as place:
        writer = Program(world, place)
        writer.do("open x", "write a 3", "sync")
        need(world.kill("backstayd") == 1, "no agent")
        need(world.run(place, "dd", "if=/dev/zero", f"of={place}/y", "bs=1M", "count=2",
                       "status=none").returncode == 0, "y")
        need_file(place / "y", bytes(2 * MIB), "another file comes home")
        need_file(place / "x", OLD, "an agent that was started later has brought it")
        world.kill("backstay-collector")
        world.run(place, "true")
        need_file(place / "x", OLD, "a collector that was started later has let it go")
        writer.do("write b 1", "sync", "write c 1", "close")
        writer.end()
        need_file(place / "x", letters("aaabc"), "closed")
        need("newer file" not in world.log(), f"a version was kept: {world.log()}")
    print("another agent, another collector: it stays with its program")


def power_off(program, folder):
    """What is left is the disk: of the versions, and of the folder."""
    with World(program) as world, place_in(folder, "power") as place:
        writer = Program(world, place)
        writer.do("open x", "write a 3", "sync", "write b 1")
        for name in ("backstay-collector", "backstayd"):
            world.kill(name)
        writer.kill()
        shutil.rmtree(world.folder / "agent")
        read = world.run(place, "cat", place / "x", stdout=subprocess.PIPE)
        need(read.stdout == letters("aaa"), f"after a power cut: {len(read.stdout)} bytes")
    print("power off after fsync: as it was then, before the next program starts")


def other_ends(program, folder):
    """What else may happen to a file that was synced."""
    ends = {
        "renamed": (["rename x y"], {"x": None, "y": "aaab"}),
        "removed": (["unlink x"], {"x": None}),
        "forked": (["fork"], {"x": "aaab"}),
        "still open": ([], {"x": "aaab"}),
    }
    for name, (words, wanted) in ends.items():
        for killed in (False, True):
            with World(program) as world, place_in(folder, "ends") as place:
                writer = Program(world, place)
                writer.do("open x", "write a 3", "sync", "write b 1", *words)
                writer.kill() if killed else writer.end()
                world.run(place, "true")
                for file, text in wanted.items():
                    if killed and name == "still open":
                        text = "aaa"
                    need_file(place / file, None if text is None else letters(text),
                              f"{name}, killed: {killed}")
                need("newer file" not in world.log(), f"{name}: kept: {world.log()}")
                need(not list((world.folder / "agent").glob("hold-*")), f"{name}: a hold is left")
    print("renamed, removed, forked, still open at the end")


def home(program, folder):
    with World(program, BACKSTAY_CAPTURE_FSYNC="home") as world, place_in(folder, "home") as place:
        writer = Program(world, place)
        writer.do("open x", "write a 3", "sync")
        need_file(place / "x", letters("aaa"), 'capture.fsync = "home"')
        writer.do("write b 1", "close")
        writer.end()
        need_file(place / "x", letters("aaab"), "closed")
    print('capture.fsync = "home": at its place')


def random_words(program, folder, seed):
    """Programs sync, write, close and rename at random; any process is killed at any moment."""
    chance = random.Random(seed)
    for life in range(8):
        case = f"seed {seed}, life {life}"
        with World(program) as world, place_in(folder, "random") as place:
            name, allowed = "x", [OLD]  # of the file under its name
            writer, is_open, pending = Program(world, place), False, b""
            words, older, killed = [], [], set()
            for _ in range(chance.randrange(4, 30)):
                verb = chance.choice(("write", "write", "sync", "sync", "close", "rename", "agent",
                                      "collector"))
                if verb in ("agent", "collector"):
                    world.kill("backstayd" if verb == "agent" else "backstay-collector")
                elif not is_open:
                    verb = f"open {name}"
                    is_open, pending = True, b""
                elif verb == "write":
                    letter = chance.choice("abcdef")
                    verb, pending = f"write {letter} 1", pending + letters(letter)
                elif verb == "rename":
                    name = "y" if name == "x" else "x"
                    verb = f"rename {'y' if name == 'x' else 'x'} {name}"
                words.append(verb)
                if verb in ("agent", "collector"):
                    killed.add(verb)
                    if len(killed) == 2:
                        allowed += older  # closed, captured, and both are lost that had it
                    continue
                writer.do(verb)
                if verb.startswith("write"):
                    allowed.append(pending)  # newer: never asked of it, never wrong
                elif verb in ("sync", "close") or verb.startswith("rename"):
                    older, killed = allowed if verb == "close" else [], set()
                    allowed = [pending]
                    is_open = is_open and verb != "close"
            writer.kill()
            world.run(place, "true")
            found = (place / name).read_bytes()
            need(found in allowed or found == b"" and OLD in allowed,
                 f"{case}, {words}: {name} has {len(found)} bytes {found[::MIB]}")
            need(not temporary_files(place), f"{case}: left {temporary_files(place)}")
    print("random words")


COLLECTOR_STEPS = ("begun", "held", "filled", "ended", "sync_captured", "sync_local", "synced",
                   "listed", "unheld", "settles", "settled")
AGENT_STEPS = ("home.1", "home.4", "home.6", "commit.1", "commit.4", "commit.6")


def killed_at_each_step(program, folder):
    """Collector or agent; the program goes on, or is killed after its second fsync."""
    for what, steps in (("backstay-collector", [f"collector.{step}" for step in COLLECTOR_STEPS]),
                        ("backstayd", AGENT_STEPS)):
        died = 0
        for number, step in enumerate(steps):
            with World(program) as world, place_in(folder, "steps") as place:
                pid = start_with(world, place, f"{step}=kill", what)
                writer = Program(world, place)
                writer.do("open x", "write a 2", "sync", "write b 1", "sync")
                if number % 2:
                    writer.kill()
                    world.run(place, "true")
                    need_file(place / "x", letters("aab"), f"{step}, program killed")
                else:
                    writer.do("write c 1", "sync", "close")
                    writer.end()
                    need_file(place / "x", letters("aabc"), step)
                died += pid not in world.pids(what)
                need(not temporary_files(place), f"{step}: left {temporary_files(place)}")
        print(f"{what}: killed at {died} of {len(steps)} steps")
        need(died >= len(steps) // 2, "too few were killed: the test says nothing")


TESTS = {test.__name__: test for test in (stays_in_memory, home, killed_after, another_agent,
                                          power_off, other_ends, random_words, killed_at_each_step)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--first", type=int, default=None)
    parser.add_argument("--only", choices=TESTS)
    options = parser.parse_args()
    seed = random.randrange(10**9) if options.first is None else options.first
    print(f"seed {seed}", flush=True)
    options.folder.parent.mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sync", dir=options.folder.parent))
    for name, test in TESTS.items():
        if options.only in (None, name):
            test(options.program, folder, *([seed] if test is random_words else []))
            sys.stdout.flush()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
