"""Programs under `backstay run --transparent`: started, killed at random, compared.

BACKSTAY_SEED repeats a run; BACKSTAY_LIVES sets how often a test ends each program.
"""

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import PROGRAM
from processes import wait_for

PYTHON = "/usr/bin/python3"
LIVES = int(os.environ.get("BACKSTAY_LIVES", "3"))

# Prints a checksum of all that it has done, every so often.
STEPS = """
import hashlib, sys, time
done = hashlib.sha256()
for step in range(int(sys.argv[1])):
    for i in range(2000):
        done.update(b"%d %d" % (step, i))
    if step % 10 == 0:
        print(step, done.hexdigest(), flush=True)
    time.sleep(0.002)
print("end", done.hexdigest())
"""

# Waits in the middle until a file is there.
WAITS = """
import os, sys, time
print("begun", flush=True)
{}
while not os.path.exists("go"):
    time.sleep(0.01)
print("gone on", flush=True)
"""


@pytest.fixture(autouse=True, scope="session")
def seed():
    value = int(os.environ.get("BACKSTAY_SEED", time.time_ns() % 1_000_000))
    print(f"BACKSTAY_SEED={value}", flush=True)
    random.seed(value)


def program(world, text):
    path = world.folder / "app.py"
    path.write_text(text)
    return [PYTHON, path]


def environment(pid):
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def processes_of(world, program="backstay-boot"):
    """The processes under test that run this file. The program itself runs the boot program's."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "exe").endswith(f"/{program}"):
                found.append(int(entry.name))
        except OSError:
            pass
    mine = f"BACKSTAY_DIR={world.dir}".encode()
    return [pid for pid in found if mine in environment(pid).split(b"\0")]


def versions(world, job):
    """Those that are on the disk."""
    done = world.run("ls", job, "--json")
    found = json.loads(done.stdout).get("versions", []) if done.returncode == 0 else []
    return [one for one in found if one["level"] != "none"]


def status_of(world, job):
    document = json.loads(world.run("status", "--json").stdout or "{}")
    return next((one for one in document.get("jobs", []) if one.get("job") == job), {})


STARTED = []
KILLS = []  # how often go_on() has ended a program, each time


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Also where a test fails: SIGTERM saves and ends a program."""
    yield
    while STARTED:
        running = STARTED.pop()
        if running.poll() is None:
            running.terminate()
            running.communicate(timeout=60)


def start(world, words, *options, out=subprocess.PIPE, env=None, pass_fds=(), before=()):
    """`before`: a command that becomes `backstay run`."""
    command = [PROGRAM, "run", "--transparent", *options, "--", *words]
    STARTED.append(subprocess.Popen(
        [*map(str, [*before, *command])],
        env={**world.env, **(env or {})}, cwd=world.folder, stdin=subprocess.DEVNULL,
        stdout=out, stderr=subprocess.PIPE, text=True, pass_fds=pass_fds))
    return STARTED[-1]


def first_versions(world, running, count=1):
    """Waits for them; a program that has not saved so many says why."""
    try:
        wait_for(lambda: running.poll() is not None or len(versions(world, "app")) >= count,
                 "a first version")
    except AssertionError:
        running.kill()
        raise AssertionError(running.communicate()[1]) from None


def stop(running):
    running.send_signal(signal.SIGTERM)
    running.wait(timeout=60)
    assert running.returncode == 143, running.stderr.read()


def kill_job(world, running):
    """`backstay run`, the companions and the programs. A program dies with its companion."""
    running.kill()
    for victim in ("backstay-companion", "backstay-boot"):
        for pid in processes_of(world, victim):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    running.wait()
    wait_for(lambda: not processes_of(world), "the end of the programs")


RESULTS = {}  # of undisturbed runs


def once(words, folder, run):
    """What `run()` gives, which is the same each time. It is called once for the same words and the
    same files in the folder of the test: these runs take as long as the tests."""
    files = sorted((path.name, path.read_bytes()) for path in folder.iterdir() if path.is_file())
    what = (*(str(word).replace(str(folder), "") for word in words), *files)
    if what not in RESULTS:
        RESULTS[what] = run()
    return RESULTS[what]


def undisturbed(words, folder):
    def run():
        done = subprocess.run(list(map(str, words)), cwd=folder, stdin=subprocess.DEVNULL,
                              capture_output=True, check=True, timeout=100)
        return done.stdout

    return once(words, folder, run)


def newest(world):
    return max((one["version"] for one in versions(world, "app")), default=0)


def kill_at_random(world, running, lives, victim):
    """Ends the victim with SIGKILL at random moments; returns how often.

    Each life has saved a version: two without one are a crash loop.
    """
    killed = 0
    seen = newest(world)
    for _ in range(lives):
        wait_for(lambda: running.poll() is not None or newest(world) > seen, "a new version")
        time.sleep(random.uniform(0, 0.3))  # a random moment; nothing is waited for
        if running.poll() is not None:
            break
        seen = newest(world)
        for pid in processes_of(world, victim):
            try:
                os.kill(pid, 9)
                killed += 1
            except ProcessLookupError:
                pass
    return killed


def go_on(world, words, lives=LIVES, interval=0.1, victim="backstay-boot"):
    """The program prints what an undisturbed one prints, whatever is killed."""
    expected = undisturbed(words, world.folder)
    out = world.folder / "out"
    for _ in range(5):  # a program may end before its first version is there
        with open(out, "wb") as file:
            running = start(world, words, "--job", "app", "--fresh", "--interval", interval,
                            "--retries", 2 * lives, out=file)
            killed = kill_at_random(world, running, lives, victim)
            _, told = running.communicate(timeout=100)
        assert running.returncode == 0, told
        assert out.read_bytes() == expected, told
        if killed > 0:
            KILLS.append(killed)
            return told
    raise AssertionError("the program had ended before the first kill, five times")


def script(world, text):
    path = world.folder / "app.sh"
    path.write_text(text)
    path.chmod(0o755)
    return path
