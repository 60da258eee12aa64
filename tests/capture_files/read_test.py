#!/usr/bin/env python3
"""A file that was closed and is not at its place yet is read without waiting for a disk.

    read_test.py BACKSTAY FOLDER [--only NAME]

The agent is stopped where the test says so: what waits for it would not end.
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from capturing import World, temporary_files  # noqa: E402
from collector_test import need, place_in, start_with  # noqa: E402

MIB = 1 << 20
# Writes and closes; then, when told, looks at the file and reads it in several ways.
PROGRAM = """
import os, sys
os.chdir(sys.argv[1])
new = bytes(range(251)) * (3 * 1048576 // 251)
f = open('x', 'wb', buffering=0); f.write(new); f.close()
print('closed', flush=True); sys.stdin.readline()
before = os.stat('x')
with open('x', 'rb') as g:
    assert os.fstat(g.fileno()).st_ino == before.st_ino, 'another inode'
    assert g.read() == new, 'other bytes'
assert os.stat('x').st_size == len(new) and os.stat('x').st_mode & 0o777 == 0o644, 'stat'
d = os.open('x', os.O_RDONLY); assert os.pread(d, 100, 251) == new[:100], 'pread'
print('read', before.st_ino, flush=True); sys.stdin.readline()
"""
THEN = {
    "nothing": "",
    "written in place": "h = open('x', 'r+b', buffering=0); h.write(b'###'); h.close()\n"
                        "assert os.pread(d, 5, 0) == b'###' + new[3:5], 'in place'\n",
    "renamed": "os.rename('x', 'y'); assert open('y', 'rb').read() == new; os.rename('y', 'x')\n",
    "written anew": "h = open('x', 'wb', buffering=0); h.write(new + b'+'); h.close()\n"
                    "assert open('x', 'rb').read() == new + b'+', 'anew'\n"
                    "assert os.pread(d, 9, 0) == new[:9], 'the former one'\n",
    "removed": "os.unlink('x'); assert not os.path.exists('x')\n",
}
NEW = bytes(range(251)) * (3 * MIB // 251)
LEFT = {"written in place": b"###" + NEW[3:], "written anew": NEW + b"+", "removed": None}


@contextlib.contextmanager
def stopped(world):
    pids = world.pids("backstayd")
    need(len(pids) == 1, f"agents: {pids}")
    os.kill(pids[0], signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pids[0], signal.SIGCONT)


def start(world, place, then):
    return subprocess.Popen(world.words(place, sys.executable, "-c", PROGRAM + THEN[then], place),
                            env=world.env, cwd=world.folder, text=True, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE)


def answer(program, words):
    program.stdin.write("go\n")
    program.stdin.flush()
    said = program.stdout.readline()
    need(said.startswith(words), f"instead of {words!r} the program said {said!r}")
    return said


def reads_without_agent(program, folder):
    for then in THEN:
        with World(program) as world, place_in(folder, "reads") as place:
            writer = start(world, place, then)
            need(writer.stdout.readline() == "closed\n", "not closed")
            with stopped(world):
                inode = int(answer(writer, "read").split()[1])
                need((place / "x").read_bytes() == NEW, "others see another file")
            _, _ = writer.communicate("go\n", timeout=60)
            need(writer.returncode == 0, f"{then}: the program ended with {writer.returncode}")
            found = (place / "x").read_bytes() if (place / "x").exists() else None
            need(found == LEFT.get(then, NEW), f"{then}: x has other bytes")
            if then in ("nothing", "written in place", "renamed"):
                need((place / "x").stat().st_ino == inode, f"{then}: it has got another inode")
            need(not temporary_files(place), f"{then}: left {temporary_files(place)}")
            need(not list((world.folder / "agent").glob("hold-*")), f"{then}: a hold was left")
            need("newer file" not in world.log(), f"{then}: a version was kept: {world.log()}")
    print(f"read while the agent was stopped; then {', '.join(THEN)}")


STEPS = ("show_held", "copied", "shown", "copy_synced")


def killed_at_each_step(program, folder):
    died = 0
    for step in STEPS:
        with World(program) as world, place_in(folder, "steps") as place:
            pid = start_with(world, place, f"collector.{step}=kill", "backstay-collector")
            writer = start(world, place, "nothing")
            need(writer.stdout.readline() == "closed\n", "not closed")
            answer(writer, "read")
            writer.communicate("go\n", timeout=60)
            need(writer.returncode == 0, f"{step}: {writer.returncode}")
            world.run(place, "true")
            need((place / "x").read_bytes() == NEW, f"{step}: x has other bytes")
            died += pid not in world.pids("backstay-collector")
            left = [path for path in temporary_files(place) if step != "copied"]
            need(not left, f"{step}: left {left}")
    need(died >= len(STEPS) - 1, f"only {died} were killed: the test says nothing")
    print(f"collector: killed at {died} of {len(STEPS)} steps")


def both_killed(program, folder):
    with World(program) as world, place_in(folder, "both") as place:
        writer = start(world, place, "nothing")
        need(writer.stdout.readline() == "closed\n", "not closed")
        answer(writer, "read")
        world.kill("backstay-collector")
        world.kill("backstayd")
        writer.communicate("go\n", timeout=60)
        need((place / "x").read_bytes() == NEW, "both killed: x has other bytes")
    print("collector and agent killed after a read")


TESTS = {test.__name__: test for test in (reads_without_agent, killed_at_each_step, both_killed)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", choices=TESTS)
    options = parser.parse_args()
    options.folder.parent.mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="read", dir=options.folder.parent))
    for name, test in TESTS.items():
        if options.only in (None, name):
            test(options.program, folder)
            sys.stdout.flush()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
