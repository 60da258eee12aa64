"""`backstay run --transparent`: programs that know nothing of Backstay, saved and brought back.

BACKSTAY_SEED repeats a run; BACKSTAY_LIVES sets how often a test ends each program.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import PROGRAM, ROOT
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


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Also where a test fails: SIGTERM saves and ends a program."""
    yield
    while STARTED:
        running = STARTED.pop()
        if running.poll() is None:
            running.terminate()
            running.communicate(timeout=60)


def start(world, words, *options, out=subprocess.PIPE, env=None, pass_fds=()):
    STARTED.append(subprocess.Popen(
        [PROGRAM, "run", "--transparent", *map(str, options), "--", *map(str, words)],
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


def undisturbed(words, folder):
    done = subprocess.run(list(map(str, words)), cwd=folder, stdin=subprocess.DEVNULL,
                          capture_output=True, check=True, timeout=100)
    return done.stdout


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
            return told
    raise AssertionError("the program had ended before the first kill, five times")


def test_a_killed_program_goes_on_from_where_it_was_saved(world):
    told = go_on(world, [*program(world, STEPS), 700])
    assert "from version" in told


def test_a_killed_companion_is_a_killed_program(world):
    told = go_on(world, [*program(world, STEPS), 700], victim="backstay-companion")
    assert "from version" in told


def test_a_killed_agent_costs_versions_and_not_the_program(world):
    told = go_on(world, [*program(world, STEPS), 700], interval=0.02, victim="backstayd")
    assert "restart 1" not in told


def test_numpy_with_threads(world):
    numpy = os.environ.get("BACKSTAY_NUMPY_PYTHON", PYTHON)
    if subprocess.run([numpy, "-c", "import numpy"], capture_output=True).returncode != 0:
        pytest.skip("no numpy")
    text = """
import numpy as np
a = np.random.default_rng(1).random((400, 400))
for step in range(150):
    a = a @ a
    a /= np.abs(a).max()
    if step % 10 == 0: print(step, repr(a.sum()), flush=True)
"""
    go_on(world, [numpy, program(world, text)[1]])


def test_gzip_of_a_file(world):
    source = world.folder / "large"
    with open(source, "w") as file:
        for i in range(800_000):
            file.write(f"{i * 7919 % 1000003} {i * i}\n")
    go_on(world, ["gzip", "-9", "-c", source])


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="no sqlite3")
def test_sqlite_in_memory(world):
    query = world.folder / "query"
    query.write_text(
        "create table t(a int, b text);\n"
        "with recursive c(n) as (select 1 union all select n+1 from c where n<1500000)"
        " insert into t select n, hex(n*7919) from c;\n"
        "create index i on t(b);\n"
        "select count(*), sum(length(b)), max(b) from t;\n")
    go_on(world, ["sqlite3", ":memory:", f".read {query}"])


def script(world, text):
    path = world.folder / "app.sh"
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_script_that_becomes_its_program_is_saved_as_that_program(world):
    """As the python3 of pyenv, and wrappers of large programs."""
    app = program(world, STEPS)[1]
    wrapper = script(world, f'#!/bin/sh\nA=$(echo {PYTHON})\nexec "$A" {app} "$@"\n')
    told = go_on(world, [wrapper, 700])
    assert "from version" in told
    shown = world.json("show", "app")["process"]
    assert os.path.realpath(shown["program"]) == os.path.realpath(PYTHON)


def test_a_script_by_env_is_saved(world):
    app = program(world, "#!/usr/bin/env python3\n" + STEPS)[1]
    app.chmod(0o755)
    assert "from version" in go_on(world, [app, 700])


def test_a_program_that_becomes_a_static_one_runs_on_and_says_so_once(world):
    source = world.folder / "static.c"
    source.write_text("#include <stdio.h>\n#include <unistd.h>\n"
                      "int main(void) { puts(\"static\"); fflush(stdout);\n"
                      "  while (access(\"go\", F_OK)) usleep(1000); puts(\"gone on\"); }\n")
    made = subprocess.run(["cc", "-static", source, "-o", world.folder / "static"], check=False)
    if made.returncode != 0:
        pytest.skip("no static libc here")
    running = start(world, [script(world, "#!/bin/sh\nexec ./static\n")], "--job", "app",
                    "--interval", 0.05)
    assert running.stdout.readline() == "static\n"
    first = running.stderr.readline()
    assert "cannot be saved now" in first and "/static (exec), which is linked statically" in first
    (world.folder / "go").touch()
    out, told = running.communicate(timeout=60)
    assert (running.returncode, out) == (0, "gone on\n"), told
    assert told.count("cannot be saved now") == 0, told


def go_on_from_another_folder(world, words, out):
    with open(out, "ab") as file:
        done = subprocess.run(
            [PROGRAM, "run", "--transparent", "--job", "app", "--", *map(str, words)],
            env=world.env, cwd="/", stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE,
            timeout=60)
    assert done.returncode == 0, done.stderr


def test_sigterm_saves_and_the_same_command_goes_on_from_another_folder(world):
    words = [*program(world, STEPS), 500]
    expected = undisturbed(words, world.folder)
    out = world.folder / "out"
    with open(out, "ab") as file:
        running = start(world, words, "--job", "app", "--interval", 0.1, out=file)
        first_versions(world, running)
        stop(running)
    assert out.read_bytes() != expected
    go_on_from_another_folder(world, words, out)
    assert out.read_bytes() == expected


def test_a_damaged_version_is_passed_over(world):
    words = [*program(world, STEPS), 500]
    expected = undisturbed(words, world.folder)
    out = world.folder / "out"
    with open(out, "ab") as file:
        running = start(world, words, "--job", "app", "--interval", 0.1, out=file)
        first_versions(world, running, 2)
        stop(running)
    world.run("agent", "stop")  # else the version comes from its memory
    folder = max((world.dir / "app").glob("v*"))
    segment = next(folder.glob("*segment*"))
    bytes_of = bytearray(segment.read_bytes())
    bytes_of[len(bytes_of) // 2] ^= 1
    segment.write_bytes(bytes_of)
    go_on_from_another_folder(world, words, out)
    assert out.read_bytes() == expected
    assert folder.name[1:].lstrip("0") in world.run("ls", "app").stdout
    assert "damaged" in world.run("ls", "app", "--json").stdout


def test_show_and_verify_know_a_process(world):
    words = program(world, WAITS.format(""))
    running = start(world, words, "--job", "app", "--interval", 0.05)
    first_versions(world, running)
    stop(running)
    process = world.json("show", "app")["process"]
    assert process["program"] == PYTHON and process["folder"] == str(world.folder)
    assert any(area["saved_bytes"] > 0 for area in process["areas"])
    assert [one["number"] for one in process["descriptors"]][:3] == [0, 1, 2]
    assert f"PROCESS {process['pid']} of {PYTHON}" in world.run("show", "app").stdout
    assert world.run("verify", "app").returncode == 0


def test_fresh_begins_anew(world):
    words = program(world, WAITS.format(""))
    running = start(world, words, "--job", "app", "--interval", 0.05)
    assert running.stdout.readline() == "begun\n"  # what SIGTERM saves is behind it
    stop(running)
    (world.folder / "go").touch()
    assert world.run("run", "--transparent", "--job", "app", "--", *words).stdout == "gone on\n"
    done = world.run("run", "--transparent", "--fresh", "--job", "app", "--", *words)
    assert done.stdout == "begun\ngone on\n"


def test_backstay_checkpoint_saves_it(world):
    words = program(world, WAITS.format(""))
    running = start(world, words, "--job", "app", "--interval", 3600)
    wait_for(lambda: status_of(world, "app").get("processes"), "the job's process")
    assert world.run("checkpoint", "app").returncode == 0
    taken = wait_for(lambda: versions(world, "app"), "the version")
    assert [one["version"] for one in taken] == [1]
    (world.folder / "go").touch()
    out, told = running.communicate(timeout=60)
    assert (running.returncode, out) == (0, "begun\ngone on\n"), told


def test_a_program_that_cannot_be_saved_runs_on_and_says_why(world):
    words = program(world, "import socket; ours = socket.socketpair()" + WAITS.format(""))
    running = start(world, words, "--job", "app", "--interval", 3600)
    assert running.stdout.readline() == "begun\n"  # it has its sockets
    running.send_signal(signal.SIGUSR1)
    assert "asked the program" in running.stderr.readline()
    first = running.stderr.readline()
    assert "cannot be saved now, because descriptor" in first and "socket" in first, first
    why = wait_for(lambda: status_of(world, "app").get("cannot_save"), "the reason in the status")
    assert "socket" in why
    assert "it cannot be saved now" in world.run("status").stdout
    (world.folder / "go").touch()
    out, told = running.communicate(timeout=60)
    assert (running.returncode, out) == (0, "gone on\n"), told
    assert versions(world, "app") == [] and "could not be saved, because" in told


def test_a_pipe_that_the_program_writes_is_inherited_again_or_empty(world):
    """Shells, editors and queueing systems leave such descriptors in what they start."""
    ours, theirs = os.pipe()
    said = f"import os; said = os.fdopen({theirs}, 'w'); print('said', file=said, flush=True)"
    words = program(world, said + WAITS.format("") + "print('again', file=said, flush=True)\n")
    running = start(world, words, "--job", "app", "--interval", 0.1, pass_fds=(theirs,))
    assert running.stdout.readline() == "begun\n"
    seen = newest(world)
    wait_for(lambda: newest(world) > seen + 1, "a version of what it does now")
    seen = newest(world)
    os.kill(processes_of(world)[0], signal.SIGKILL)
    wait_for(lambda: newest(world) > seen + 1, "a version of the program that has come back")
    stop(running)
    os.close(theirs)
    assert os.read(ours, 100) == b"said\n" and os.read(ours, 100) == b""
    (world.folder / "go").touch()
    done = world.run("run", "--transparent", "--job", "app", "--", *words)
    assert (done.returncode, done.stdout) == (0, "gone on\n"), done.stderr


def test_the_example(world):
    folders = f"{Path(PROGRAM).parent}:{world.env['PATH']}"
    done = subprocess.run([ROOT / "examples/transparent/run", world.folder],
                          env={**world.env, "PATH": folders}, cwd=world.folder,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "is that of an undisturbed run" in done.stdout and "1 restart" in done.stderr


@pytest.mark.parametrize("words, why", [
    (["/bin/su"], "set-user-id"),
    (["mpirun", "-n", "2", "/bin/true"], "saves one process"),
    (["nowhere/app"], "not found"),
])
def test_refuses_by_name(world, words, why):
    if words[0] == "/bin/su" and not os.path.exists("/bin/su"):
        pytest.skip("no set-user-id program here")
    done = world.run("run", "--transparent", "--job", "app", "--", *words)
    assert done.returncode != 0 and why in done.stderr, done.stderr
    assert "restart 1" not in done.stderr, done.stderr


def test_a_version_of_arrays_is_not_taken_for_a_process(world):
    world.golden()
    done = world.run("run", "--transparent", "--job", "golden", "--", "/bin/true")
    assert done.returncode != 0
    assert "ranks" in done.stderr or "uses Backstay itself" in done.stderr, done.stderr
    assert "restart 1" not in done.stderr, done.stderr
