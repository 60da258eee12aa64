#!/usr/bin/env python3
"""Programs write a file, close it and rename it, and collector or agent is killed.

    rename_test.py BACKSTAY FOLDER [--only NAME]...

No rename waits for a disk; under the new name there is the old file or the new one, whole; of a
program that was told that its file is renamed, the new one, and none under the old name.
"""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from capturing import World, temporary_files  # noqa: E402
from processes import wait_for  # noqa: E402

PYTHON = os.environ.get("BACKSTAY_NUMPY_PYTHON", sys.executable)
MIB = 1 << 20
# Argument 1: the file; 2: how often it is written; 3: what stands beside the renames.
PROGRAM = """
import os, sys
name, turns, beside = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def new(turn): return bytes([turn]) * (3 << 20)
for turn in range(turns):
    to = name + (str(turn) if beside == 'names' else '')
    with open(name + '.tmp', 'wb') as f:
        f.write(new(turn))
        os.fchmod(f.fileno(), 0o640)
    if beside == 'twice':
        os.rename(name + '.tmp', name + '.ready')
        os.rename(name + '.ready', to)
    else:
        os.rename(name + '.tmp', to)
    if beside == 'look':
        with open(to, 'rb') as f: same = f.read() == new(turn)
        print('renamed', same, os.path.exists(name + '.tmp'), flush=True)
if beside == 'away': os.rename(name, name + '.end')
if beside != 'look': print('renamed', flush=True)
if beside == 'end': os._exit(0)
"""


def need(condition, what):
    if not condition:
        sys.exit(what)


def new(turn):
    return bytes([turn]) * (3 * MIB)


def run(world, place, turns, beside):
    return world.run(place, PYTHON, "-c", PROGRAM, place / "x", turns, beside,
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def fresh(folder, old):
    place = folder / "place"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    if old:
        (place / "x").write_bytes(b"old" * 1000)
        (place / "x").chmod(0o600)
    return place


def check(place, files, done, what):
    need(done.returncode == 0, f"{what}: {done}")
    need("False" not in done.stdout.replace("True False", "True"), f"{what}: {done}")
    found = sorted(path.name for path in place.iterdir())
    need(found == sorted(files), f"{what}: {found} stand there, not {sorted(files)}")
    for name, turn in files.items():
        need((place / name).read_bytes() == new(turn), f"{what}: {name} is not the new file")
        need((place / name).stat().st_mode & 0o777 == 0o640, f"{what}: {name} has another mode")


def without_waiting(program, folder):
    """Most renames are taken on the way: the log says so."""
    turns = 12
    for beside, old, files in (("end", True, {"x": turns - 1}), ("end", False, {"x": turns - 1}),
                               ("twice", True, {"x": turns - 1}),
                               ("away", True, {"x.end": turns - 1}),
                               ("names", False, {f"x{turn}": turn for turn in range(turns)})):
        with World(program, BACKSTAY_AGENT_LOG_LEVEL="debug") as world:
            place = fresh(folder, old)
            done = run(world, place, turns, beside)
            case = f"{beside}, {'an old file' if old else 'no file'}"
            check(place, files, done, case)
            taken = world.log().count("a file was renamed")
            print(f"{case}: {taken} renames on the way")
            need(taken >= turns // 2, f"{case}: most renames waited")


# Renames when it is told to.
TOLD = PROGRAM.replace("    else:\n        os.rename(",
                       "    else:\n        print('closed', flush=True)\n"
                       "        sys.stdin.readline()\n        os.rename(")


def failpoint_pipe(world):
    pipe = world.folder / "pipe"
    world.env["BACKSTAY_FAILPOINT_PIPE"] = str(pipe)
    for end in (".reached", ".go"):
        os.mkfifo(f"{pipe}{end}")
    return pipe


def as_it_comes_to_its_place(program, folder):
    """The agent has the file's bytes beside its path, and takes no other name any more."""
    for old in (True, False):
        with World(program, BACKSTAY_AGENT_LOG_LEVEL="debug",
                   BACKSTAY_FAILPOINT="home.3=wait") as world:
            pipe = failpoint_pipe(world)
            place = fresh(folder, old)
            words = world.words(place, PYTHON, "-c", TOLD, place / "x", 1, "end")
            running = subprocess.Popen(words, env=world.env, cwd=world.folder, text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            need(running.stdout.readline() == "closed\n", "the program does not close its file")
            pathlib.Path(f"{pipe}.reached").read_bytes()
            running.stdin.write("rename\n")
            running.stdin.flush()
            wait_for(lambda: "a file was not renamed" in world.log(), "the agent's no")
            need(running.poll() is None, "the rename did not wait")
            pathlib.Path(f"{pipe}.go").write_bytes(b"")
            stdout, stderr = running.communicate(timeout=60)
            done = subprocess.CompletedProcess(words, running.returncode, stdout, stderr)
            case = f"renamed as it comes, {'an old file' if old else 'no file'}"
            need("is on its way" in world.log(), f"{case}: {world.log()}")
            check(place, {"x": 0}, done, case)
            need(not temporary_files(place), f"{case}: left {temporary_files(place)}")


COLLECTOR_STEPS = ("place_listed", "moved", "placeholder_gone", "settles", "settled")
AGENT_STEPS = ("commit.1", "commit.4", "commit.6", "home.1", "home.2", "home.3", "home.4",
               "home.5", "home.6")


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


def killed_at_each_step(program, folder):
    cases = [("backstay-collector", f"collector.{step}") for step in COLLECTOR_STEPS]
    cases += [("backstayd", step) for step in AGENT_STEPS]
    for old in (True, False):
        died = 0
        for what, step in cases:
            for beside, turns in (("look", 2), ("end", 1)):
                with World(program) as world:
                    place = fresh(folder, old)
                    pid = start_with(world, place, f"{step}=kill", what)
                    done = run(world, place, turns, beside)
                    died += pid not in world.pids(what)
                    case = f"killed at {step}, {beside}, {'an old file' if old else 'no file'}"
                    check(place, {"x": turns - 1}, done, case)
                    need(not temporary_files(place), f"{case}: left {temporary_files(place)}")
        print(f"killed at {died} of {2 * len(cases)} steps")
        need(died >= 2 * len(cases) - 8, "too few were killed: the test says nothing")


def start(world, place, turns, beside):
    words = world.words(place, PYTHON, "-c", PROGRAM, place / "x", turns, beside)
    return subprocess.Popen(words, env=world.env, cwd=world.folder, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(program):
    out, err = program.communicate(timeout=100)
    return subprocess.CompletedProcess(program.args, program.returncode, out, err)


def renamed_and_on_the_disk(program, world):
    need(program.stdout.readline() == "renamed\n", "it renames no file")
    wait_for(lambda: list((world.folder / "versions").rglob("commit.local")), "a version")


def on_the_disk_under_the_former_name(program, folder):
    """An agent dies that has written a version down and told nobody: the next one finds a table
    with the former name of a file that has another name, or was replaced, by then."""
    for old in (True, False):
        for turns in (1, 2):
            with World(program) as world:
                place = fresh(folder, old)
                start_with(world, place, "commit.5=hang", "backstayd")
                running = start(world, place, turns, "end")
                renamed_and_on_the_disk(running, world)
                world.kill("backstayd")
                check(place, {"x": turns - 1}, finish(running), f"{turns} turns, old: {old}")
    print("no file stays under a former name")


def brought_to_the_former_name(program, folder):
    """The next agent brings the file there before it is told, and dies as well."""
    with World(program) as world:
        place = fresh(folder, False)
        start_with(world, place, "commit.5=hang", "backstayd")
        # Stops again before it tells the next agent.
        collector = start_with(world, place, "collector.begun=stop@2", "backstay-collector")
        running = start(world, place, 1, "end")
        renamed_and_on_the_disk(running, world)
        os.kill(collector, signal.SIGSTOP)
        world.kill("backstayd")
        start_with(world, place, "home.5=hang", "backstayd")
        os.kill(collector, signal.SIGCONT)
        wait_for((place / "x.tmp").exists, "the agent brings it to the former name")
        world.kill("backstayd")
        os.kill(collector, signal.SIGCONT)
        check(place, {"x": 0}, finish(running), "an agent that was at it")
    print("a file that an agent had brought to a former name is removed")


def before_the_mark(program, folder):
    """An agent dies between a file's rename to its place and the version's mark. What its program
    does with the file meanwhile stays as it is, also where the collector dies, too."""
    for what, files in (("os.rename(n + '.tmp', n)", {"x": 0}), ("os.remove(n + '.tmp')", {})):
        for kill_collector in (False, True):
            with World(program) as world:
                pipe = failpoint_pipe(world)
                place = fresh(folder, False)
                start_with(world, place, "home.5=wait", "backstayd")
                script = WRITES + "print('closed', flush=True); sys.stdin.readline(); " + what
                running = subprocess.Popen(
                    world.words(place, PYTHON, "-c", script, place / "x"), env=world.env,
                    cwd=world.folder, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                need(running.stdout.readline() == "closed\n", "the program closes no file")
                pathlib.Path(f"{pipe}.reached").read_bytes()
                running.stdin.write("go on\n")
                running.stdin.flush()
                gone = place / "x.tmp"
                wait_for(lambda gone=gone: not gone.exists(), what)
                world.kill("backstayd")
                if kill_collector:
                    world.kill("backstay-collector")
                done = finish(running)
                need(world.run(place, "true").returncode == 0, "the next agent brings nothing")
                check(place, files, done, f"{what} before the mark, collector: {kill_collector}")
    print("what was removed or renamed before the mark does not come back")


# Each file has bytes of its own: the turn that check() expects.
USED_AGAIN = """
import os, sys
os.chdir(sys.argv[1])
def write(name, turn, ns):
    with open(name, 'wb') as f:
        f.write(bytes([turn]) * (3 << 20))
        os.fchmod(f.fileno(), 0o640)
        f.flush()
        os.utime(f.fileno(), ns=(ns, ns))
write('first', 1, 1 << 60)
write('x.tmp', 2, 1 << 60)
os.rename('x.tmp', 'x')
print('renamed', flush=True)
sys.stdin.readline()
write('x.tmp', 3, 1 << 60)
os.chmod('x.tmp', 0o640)
os.chmod('x', 0o640)
print('at their places', flush=True)
"""


def former_name_used_again(program, folder):
    """The file that stands at the former name of a renamed one, when an agent has died, is another
    one with as many bytes and the same time of change."""
    with World(program) as world:
        place = fresh(folder, False)
        start_with(world, place, "commit.1=hang", "backstayd")
        pipe = failpoint_pipe(world)
        start_with(world, place, "collector.settles=wait", "backstay-collector")
        running = subprocess.Popen(
            world.words(place, PYTHON, "-c", USED_AGAIN, place), env=world.env, cwd=world.folder,
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        need(running.stdout.readline() == "renamed\n", "it renames no file")
        pathlib.Path(f"{pipe}.reached").read_bytes()
        world.kill("backstayd")
        running.stdin.write("go on\n")
        running.stdin.flush()
        need(running.stdout.readline() == "at their places\n", "they do not come")
        pathlib.Path(f"{pipe}.go").write_bytes(b"")
        check(place, {"first": 1, "x": 2, "x.tmp": 3}, finish(running), "used again")
    print("another file under a former name stays")


# Argument 1: the file. It comes to its place under another name.
WRITES = """
import os, sys
n = sys.argv[1]
with open(n + '.tmp', 'wb') as f:
    f.write(bytes(3 << 20))
    os.fchmod(f.fileno(), 0o640)
"""


def killed_before_it_answers(program, folder):
    """The collector dies when the agent has the file and the program has not been told."""
    for what, files in (("os.rename(n + '.tmp', n)", {"x": 0}), ("os.remove(n + '.tmp')", {})):
        with World(program) as world:
            place = fresh(folder, False)
            start_with(world, place, "collector.ended=kill", "backstay-collector")
            words = world.words(place, PYTHON, "-c", WRITES + what, place / "x")
            done = subprocess.run(words, env=world.env, check=False, stdout=subprocess.PIPE,
                                  text=True)
            need(world.run(place, "true").returncode == 0, "the next agent brings nothing")
            check(place, files, done, f"{what} after the collector was killed")
    print("what the collector could not tell does not come to its former name")


def what_cannot_be_taken(program, folder):
    """Each of these is what the kernel makes of it."""
    script = """
import os, sys
os.chdir(sys.argv[1])
def write(name, text):
    with open(name, 'wb') as f: f.write(text * 300000)
def fails(error, *names):
    try: os.rename(*names)
    except OSError as e: return e.errno == error
    return False
import errno
write('a', b'a'); assert fails(errno.EISDIR, 'a', 'folder')
write('b', b'b'); os.rename('b', 'folder/b')
write('c', b'c'); os.rename('c', 'c')
write('d', b'd'); f = open('held', 'rb'); os.rename('d', 'held'); assert f.read() == b'old'
write('e', b'e'); os.rename('e', 'link')
write('g', b'g'); os.rename('g', 'two')
write('h', b'h'); assert fails(errno.ENOENT, 'h', 'none/h')
write('i', b'i'); g = open('writes', 'wb'); g.write(b'w' * 300000)
os.rename('i', 'writes'); g.close()
"""
    with World(program) as world:
        place = fresh(folder, False)
        (place / "folder").mkdir()
        for name in ("held", "writes", "two", "goal"):
            (place / name).write_bytes(b"old")
        (place / "link").symlink_to("goal")
        os.link(place / "two", place / "other")
        done = world.run(place, PYTHON, "-c", script, place, stderr=subprocess.PIPE, text=True)
        need(done.returncode == 0, f"not taken: {done}")
        for name, byte in (("a", b"a"), ("folder/b", b"b"), ("c", b"c"), ("held", b"d"),
                           ("link", b"e"), ("two", b"g"), ("h", b"h"), ("writes", b"i")):
            need((place / name).read_bytes() == byte * 300000, f"not taken: {name}")
        need((place / "other").read_bytes() == b"old" == (place / "goal").read_bytes(),
             "not taken: a second name, or the goal of a link, was changed")
        need(not (place / "link").is_symlink(), "not taken: the link is still there")
    print("what cannot be taken is as the kernel does it")


TESTS = {test.__name__: test for test in (
    without_waiting, as_it_comes_to_its_place, what_cannot_be_taken,
    on_the_disk_under_the_former_name, brought_to_the_former_name, before_the_mark,
    former_name_used_again, killed_before_it_answers, killed_at_each_step)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", choices=TESTS, action="append")
    options = parser.parse_args()
    options.folder.parent.mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rename", dir=options.folder.parent.resolve()))
    for name, test in TESTS.items():
        if not options.only or name in options.only:
            test(options.program, folder)
            sys.stdout.flush()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
