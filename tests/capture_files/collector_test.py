#!/usr/bin/env python3
"""Files go through the collector and the agent, and one of them, or the program, is killed.

    collector_test.py BACKSTAY FOLDER [--first SEED] [--only NAME]

Under every name there is the old file or the new one, whole; of a program that was told that its
file is closed, the new one, also for a process that reads it at once.
"""

import argparse
import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from capturing import World, temporary_files  # noqa: E402
from processes import wait_for  # noqa: E402

PYTHON = os.environ.get("BACKSTAY_NUMPY_PYTHON", sys.executable)
MIB = 1 << 20
# Writes `file`, says so, reads it back, and says whether it is what was written. With a third word
# it ends before: what is read back is not brought by the agent.
WRITE = """
import os, sys
name, length = sys.argv[1], int(sys.argv[2])
new = bytes(range(251)) * (length // 251)
with open(name, 'wb') as f: f.write(new); os.fchmod(f.fileno(), 0o640)
print('closed', flush=True)
if len(sys.argv) > 3: print('same', flush=True); sys.exit()
with open(name, 'rb') as f: print('same' if f.read() == new else 'other', flush=True)
"""


def new_bytes(length):
    return bytes(range(251)) * (length // 251)


def need(condition, what):
    if not condition:
        sys.exit(what)


def check_new(place, done, what, length=3 * MIB):
    need(done.returncode == 0 and done.stdout.split() == ["closed", "same"], f"{what}: {done}")
    need((place / "x").read_bytes() == new_bytes(length), f"{what}: x is not the new file")
    need((place / "x").stat().st_mode & 0o777 == 0o640, f"{what}: x has another mode")
    need(not temporary_files(place), f"{what}: left {temporary_files(place)}")


@contextlib.contextmanager
def place_in(folder, name):
    place = folder / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    (place / "x").write_bytes(b"old" * 1000)
    yield place


def write(world, place, length=3 * MIB, *more):
    return world.run(place, PYTHON, "-c", WRITE, place / "x", length, *more, stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE, text=True)


def start_with(world, place, failpoint, what):
    """The collector or the agent, with a place at which it dies; those after it have none."""
    before = dict(world.env)
    world.env["BACKSTAY_FAILPOINT"] = failpoint
    if what == "backstayd":
        subprocess.run([world.program, "agent", "start"], env=world.env, check=True,
                       stdout=subprocess.DEVNULL)
    else:
        world.run(place, "true")
    world.env = before
    return wait_for(lambda: world.pids(what), what)[0]


COLLECTOR_STEPS = ("listed", "begun", "filled", "ended", "settles", "settled")
AGENT_STEPS = ("home.1", "home.2", "home.3", "home.4", "home.5", "home.6", "commit.1", "commit.4",
               "commit.6")


def killed_at_each_step(program, folder, _):
    for what, steps in (("backstay-collector", [f"collector.{step}" for step in COLLECTOR_STEPS]),
                        ("backstayd", AGENT_STEPS)):
        died = 0
        for step in steps:
            with World(program) as world, place_in(folder, "steps") as place:
                pid = start_with(world, place, f"{step}=kill", what)
                more = ["and ends"] if step.startswith("home") else []
                check_new(place, write(world, place, 3 * MIB, *more), f"killed at {step}")
                died += pid not in world.pids(what)
        print(f"{what}: killed at {died} of {len(steps)} steps")
        need(died >= len(steps) - 2, "too few were killed: the test says nothing")


def stopped_collector(program, folder, _):
    """It is silent: the library brings the file to its place, and what comes later changes nothing.
    """
    with World(program) as world, place_in(folder, "stopped") as place:
        pid = start_with(world, place, "collector.filled=stop", "backstay-collector")
        began = time.monotonic()
        done = subprocess.run(world.words(place, PYTHON, "-c", WRITE.split("print")[0] +
                                          "os._exit(0)", place / "x", 3 * MIB),
                              env={**world.env, "BACKSTAY_CAPTURE_POOL_KIB": "0"}, timeout=60,
                              check=False)
        took = time.monotonic() - began
        need((place / "x").read_bytes() == new_bytes(3 * MIB), f"stopped: not the new file {done}")
        need(took < 50, f"stopped: it took {took} s")
        os.kill(pid, signal.SIGCONT)
        world.run(place, "true")
        need((place / "x").read_bytes() == new_bytes(3 * MIB), "continued: not the new file")
        print(f"stopped: went on after {took:.1f} s")


def small_pool(program, folder, _):
    with World(program, BACKSTAY_POOL_SIZE_MIB="8") as world, place_in(folder, "pool") as place:
        check_new(place, write(world, place, 40 * MIB), "a pool of 8 MiB", 40 * MIB)
    print("small pool: 40 MiB through 8 MiB")


@contextlib.contextmanager
def small_disk(path, size):
    path.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", path]
    if os.geteuid() != 0 or subprocess.run(command, stderr=subprocess.DEVNULL,
                                           check=False).returncode != 0:
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def full_disks(program, folder, _):
    with World(program) as world, place_in(folder, "store") as place, \
            small_disk(world.folder / "versions", "1m") as mounted:
        if not mounted:
            print("full disks: left out, nothing can be mounted here")
            return
        check_new(place, write(world, place), "the disk of the versions is full")
        check_new(place, write(world, place, 100 * MIB), "the disk and the pool are full",
                  100 * MIB)
        world.kill("backstay-collector")
        world.kill("backstayd")
    with World(program) as world, small_disk(folder / "target", "1m"):
        place = folder / "target"
        (place / "x").write_bytes(b"old" * 1000)
        done = subprocess.run([world.program, "run", "--retries", "0", "--job", "test",
                               "--capture-files", f"{place}/*", "--", "dd", "if=/dev/zero",
                               f"of={place}/x", "bs=1M", "count=3"], env=world.env, text=True,
                              stderr=subprocess.PIPE, check=False, cwd=world.folder)
        need(done.returncode == 1, f"target full: {done}")
        need(f"{place}/x could not be brought to its place" in done.stderr and
             "No space left" in done.stderr and "backstay export" in done.stderr,
             f"target full: not named: {done.stderr}")
        need((place / "x").read_bytes() == b"old" * 1000, "target full: the old file is damaged")
        found = world.folder / "found"
        version = done.stderr.split("are in version ")[1].split()[0]
        job = done.stderr.split("of job ")[1].split(":")[0]
        subprocess.run([world.program, "export", job, version, "-o", found], env=world.env,
                       check=True, stdout=subprocess.DEVNULL)
        need((found / "files" / str(place)[1:] / "x").read_bytes() == bytes(3 * MIB),
             "target full: export gives other bytes")
    written_in_place(program, folder)
    print("full disks: of the versions, of the target")


def written_in_place(program, folder):
    """No room for a copy beside the old file, so that is overwritten: the file is at its place, and
    no agent brings it again once the program's user has removed it."""
    with World(program) as world, small_disk(folder / "narrow", "5m"):
        place = folder / "narrow"
        (place / "x").write_bytes(b"old" * MIB)
        check_new(place, write(world, place, 3 * MIB, "end"), "written in place")
        job = next((world.folder / "versions").glob("test.files.*")).name
        listed = subprocess.run([world.program, "ls", "--files", job], env=world.env, text=True,
                                stdout=subprocess.PIPE, check=False).stdout
        need("No space left" not in listed and "kept" not in listed, f"not at home: {listed}")
        (place / "x").unlink()
        subprocess.run([world.program, "agent", "stop"], env=world.env, check=True,
                       stdout=subprocess.DEVNULL)
        world.run(place, "true")
        need(not (place / "x").exists(), "a file that was removed has come back")


def one_after_the_other(program, folder, _):
    """Two processes write one file in turn; a child outlives its parent; another fork in between.
    """
    script = """
import os, subprocess, sys
os.chdir(sys.argv[1])
def one(name, text):
    return f"f = open({name!r}, 'wb'); f.write({text!r}.encode() * 300000); f.close()"
for turn in range(12): subprocess.run([sys.executable, '-c', one('x', f'{turn:02d}')], check=True)
r, w = os.pipe()
f = open('y', 'wb'); f.write(b'a' * 500000); f.flush()
if os.fork() == 0:
    os.close(w); os.read(r, 1)
    f.write(b'b' * 500000); f.close()
    g = open('z', 'wb'); g.write(b'c' * 500000); g.close()
    assert open('z', 'rb').read() == b'c' * 500000
    os._exit(0)
"""
    with World(program) as world, place_in(folder, "turns") as place:
        done = world.run(place, PYTHON, "-c", script, place)
        need(done.returncode == 0, f"turns: {done}")
        need((place / "x").read_bytes() == b"11" * 300000, "turns: not the last one's file")
        wait_for(lambda: (place / "z").exists() and (place / "z").stat().st_size == 500000, "z")
        world.run(place, "true")
        need((place / "y").read_bytes() == b"a" * 500000 + b"b" * 500000, "outlived: y")
        need((place / "z").read_bytes() == b"c" * 500000, "outlived: z")
    print("one after the other, a child that outlives its parent")


# Each writes `out` from `in`, under a name of its own, again and again.
PROGRAMS = {
    "dd": "dd if=../in of=dd.out bs=64k status=none",
    "tar": "tar -cf tar.out --mtime=@0 --owner=0 --group=0 -C .. in",
    "sqlite3": "rm -f sq.tmp && sqlite3 ../db 'vacuum into \"sq.tmp\"' && mv sq.tmp sqlite.out",
    "numpy": f"{PYTHON} -c 'import numpy as n; n.save(\"numpy.npy\", n.fromfile(\"../in\", "
             "dtype=\"u1\"))'",
}
OUTPUTS = {"dd": "dd.out", "tar": "tar.out", "sqlite3": "sqlite.out", "numpy": "numpy.npy"}


def programs_here():
    has_numpy = subprocess.run([PYTHON, "-c", "import numpy"], stderr=subprocess.DEVNULL,
                               check=False).returncode == 0
    return [name for name in PROGRAMS if (has_numpy if name == "numpy" else shutil.which(name))]


def prepare(folder):
    (folder / "in").write_bytes(random.Random(1).randbytes(2 * MIB))
    if shutil.which("sqlite3"):
        subprocess.run(["sqlite3", folder / "db", "create table t(a, b); with recursive c(x) as "
                        "(select 1 union all select x + 1 from c where x < 20000) insert into t "
                        "select x, hex(x * 7919) from c;"], check=True)


def expected(folder, name):
    """What the program makes natively."""
    place = folder / "native"
    place.mkdir(exist_ok=True)
    subprocess.run(["sh", "-c", PROGRAMS[name]], cwd=place, check=True)
    return (place / OUTPUTS[name]).read_bytes()


def killed_at_random(program, folder, seed):
    """Real programs; program, collector or agent are killed at any moment."""
    chance = random.Random(seed)
    prepare(folder)
    kills = dict.fromkeys(("program", "backstay-collector", "backstayd"), 0)
    for name in programs_here():
        right = expected(folder, name)
        with World(program) as world, place_in(folder, "random") as place:
            out = place / OUTPUTS[name]
            for turn in range(6):
                before = out.read_bytes() if out.exists() else b""
                what = chance.choice(list(kills))
                running = subprocess.Popen(world.words(place, "sh", "-c", f"cd {place}; "
                                                       f"{PROGRAMS[name]}; echo told $?; :"),
                                           env=world.env, cwd=world.folder, stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, text=True,
                                           start_new_session=True)
                time.sleep(chance.uniform(0, 0.4))
                if what == "program":
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(running.pid, signal.SIGKILL)
                else:
                    kills[what] += world.kill(what)
                said, errors = running.communicate(timeout=120)
                kills["program"] += running.returncode < 0
                world.run(place, "true")  # waits until all is at home
                found = out.read_bytes() if out.exists() else b""
                case = f"seed {seed}: {name}, turn {turn}, {what} killed: {said}{errors}"
                need(what == "program" or running.returncode == 0, f"{case} {running.returncode}")
                need(found in ((right,) if "told 0" in said else (before, right, b"")),
                     f"{case}: {len(found)} bytes that are neither the old file nor the new one")
    print(f"killed at random: {kills}")


def run_waits(program, folder, _):
    """A program is killed, and when `backstay run` returns its files are at their places."""
    script = "dd if=/dev/zero of=x bs=1M count=3 status=none; dd if=/dev/zero of=y bs=1M count=9 " \
             "status=none; kill -9 $$"
    with World(program) as world, place_in(folder, "run") as place:
        for turn in range(3):
            (place / "y").unlink(missing_ok=True)
            done = subprocess.run(
                [world.program, "run", "--retries", "0", "--job", "test", "--capture-files",
                 f"{place}/*", "--", "sh", "-c", f"cd {place}; {script}"], env=world.env, text=True,
                stderr=subprocess.PIPE, check=False, cwd=world.folder)
            need(done.returncode == 137, f"run: {done}")
            for name, length in (("x", 3), ("y", 9)):
                need((place / name).read_bytes() == bytes(length * MIB),
                     f"run: turn {turn}, {name}")
        # No process asks any more: the collector ends by itself, and leaves nothing.
        wait_for(lambda: not world.pids("backstay-collector"), "the end of the collector")
        left = [path.name for path in (world.folder / "agent").glob("files-*")]
        need(not left, f"run: the collector left {left}")
    print("run waits; the collector ends")


def old_file_of_the_future(program, folder, _):
    """An old file whose time of change is ahead of the clock is no newer one of another program."""
    script = """
import os, sys
os.chdir(sys.argv[1])
def write(name):
    with open(name, 'wb') as f: f.write(b'new' * 300000)
write('x')
write('y.tmp')
os.rename('y.tmp', 'y')
with open('z', 'wb') as f:
    f.write(b'new' * 300000)
    os.fsync(f.fileno())
"""
    with World(program) as world, place_in(folder, "future") as place:
        tomorrow = time.time() + 86400
        for name in ("x", "y", "z"):
            (place / name).write_bytes(b"old")
            os.utime(place / name, (tomorrow, tomorrow))
        done = world.run(place, PYTHON, "-c", script, place)
        need(done.returncode == 0, f"future: {done}")
        for name in ("x", "y", "z"):
            need((place / name).read_bytes() == b"new" * 300000, f"future: {name} is the old file")
    print("old files of the future are replaced")


TESTS = {test.__name__: test for test in (
    killed_at_each_step, run_waits, stopped_collector, small_pool, full_disks, one_after_the_other,
    old_file_of_the_future, killed_at_random)}


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
    folder = pathlib.Path(tempfile.mkdtemp(prefix="collector", dir=options.folder.parent))
    for name, test in TESTS.items():
        if options.only in (None, name):
            test(options.program, folder, seed)
            sys.stdout.flush()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
