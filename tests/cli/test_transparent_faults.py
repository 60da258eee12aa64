"""`backstay run --transparent` where things go wrong: kills at each step, signals, no room.

BACKSTAY_SEED repeats a run.
"""

import json
import os
import select
import signal
import subprocess
import time

import pytest
from conftest import PROGRAM
from processes import wait_for
from transparent import (  # noqa: F401 (two are fixtures)
    STEPS,
    WAITS,
    first_versions,
    newest,
    nothing_is_left,
    processes_of,
    program,
    seed,
    start,
    status_of,
    stop,
    undisturbed,
)

COMPANION = "backstay-companion"
# In this order; the number of the passing leaves each life one version. The program stands still
# up to image.resume.
CUT_POINTS = ["image.cut", "rank.begin", "rank.filled", "image.resume", "rank.end", "rank.ended"]
AGENT_POINTS = ["capture.begin", "capture.end", "capture.captured", "commit.1", "commit.3",
                "commit.4", "commit.6"]
RESTART_POINTS = ["rank.verify", "image.table", "rank.deliver", "rank.restored", "image.ready",
                  "image.go"]
SHORT = 250  # steps of a program that lives for about a second


def failpoint(point, what="kill", passing=2):
    return {"BACKSTAY_FAILPOINT": f"{point}={what}@{passing}"}


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def has_stopped(world, running):
    """The companion that waits at its point; None where there is none (any more)."""
    found = wait_for(lambda: running.poll() is not None or
                     [pid for pid in processes_of(world, COMPANION) if state_of(pid) == "T"],
                     "a companion at its point")
    return None if found is True else found[0]


def same_output(world, env, meanwhile=None, words=None, before=(), interval=0.15):
    """Ends by itself, and its output is that of an undisturbed run. Returns what was told."""
    words = words or [*program(world, STEPS), SHORT]
    expected, out = undisturbed(words, world.folder), world.folder / "out"
    with open(out, "wb") as file:
        running = start(world, words, "--job", "app", "--fresh", "--interval", interval,
                        "--retries", 40, out=file, env=env, before=before)
        if meanwhile:
            meanwhile(running)
        _, told = running.communicate(timeout=100)
    assert (running.returncode, out.read_bytes() == expected) == (0, True), told
    return told


def how_runs_ended(world):
    lines = (world.dir / "app" / "events.jsonl").read_text().splitlines()
    return [event["how"] for event in map(json.loads, lines) if event["event"] == "run_end"]


@pytest.mark.parametrize("point", CUT_POINTS)
def test_kill_of_the_companion_at(world, point):
    assert "from version" in same_output(world, failpoint(point))


@pytest.mark.parametrize("point", CUT_POINTS)
def test_kill_of_the_program_at(world, point):
    killed = []

    def kill_each(running):
        while (companion := has_stopped(world, running)) is not None:
            for pid in processes_of(world):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            os.kill(companion, signal.SIGCONT)
            wait_for(lambda pid=companion: state_of(pid) != "T", "the companion goes on")

    assert "from version" in same_output(world, failpoint(point, "stop"), kill_each)
    assert killed
    assert how_runs_ended(world).count("finished") == 1  # the last


def test_a_table_that_no_restart_would_take(world):
    """The version is given up before it counts; the program goes on, and later ones are good."""
    arena, room, piece = 0x4A5F00000000, 1 << 30, 16 << 20  # src/capture/image/boot/window.h

    def damage(running):
        companion = has_stopped(world, running)
        [pid] = processes_of(world)
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
            for at in range(arena, arena + room, piece):
                memory.seek(at)
                if (footer := memory.read(piece).rfind(b"BKSTIMG1")) >= 0:
                    break
            memory.seek(at + footer - 16)
            memory.write(b"damaged.")
        os.kill(companion, signal.SIGCONT)

    told = same_output(world, failpoint("image.cut", "stop"), damage)
    why = "was not saved: no restart would take its image: the table's checksum does not match"
    assert why in told and "restart 1" not in told, told
    assert world.run("verify", "app").returncode == 0


@pytest.mark.parametrize("point", AGENT_POINTS)
def test_kill_of_the_agent_at(world, point):
    """It costs versions, and never the program."""
    told = same_output(world, failpoint(point))
    assert "restart 1" not in told and "agent" in told, told


@pytest.mark.parametrize("point", RESTART_POINTS)
def test_restart_that_is_killed_twice_and_then_comes_back(world, point):
    words, out = [*program(world, STEPS), SHORT], world.folder / "out"
    expected = undisturbed(words, world.folder)
    with open(out, "ab") as file:
        running = start(world, words, "--job", "app", "--interval", 0.1, out=file)
        first_versions(world, running)
        stop(running)
        for _ in range(2):
            again = start(world, words, "--job", "app", "--retries", 0, out=file,
                          env=failpoint(point, passing=1))
            _, told = again.communicate(timeout=60)
            assert again.returncode != 0, told
        last = start(world, words, "--job", "app", out=file)
        _, told = last.communicate(timeout=60)
    assert (last.returncode, out.read_bytes() == expected) == (0, True), told


def in_a_cut(world, words):
    """A program whose companion waits in the middle of its first cut; nothing else asks for one."""
    running = start(world, words, "--job", "app",
                    env=failpoint("image.cut", "stop", 1) |
                    {"BACKSTAY_CHECKPOINT_POLICY": "request"})
    assert running.stdout.readline() == "begun\n"
    os.kill(processes_of(world, COMPANION)[0], signal.SIGUSR1)
    return running, has_stopped(world, running)


def test_requests_during_a_cut_are_one_more_version(world):
    running, companion = in_a_cut(world, program(world, WAITS.format("")))
    for _ in range(3):
        os.kill(companion, signal.SIGUSR1)
    os.kill(companion, signal.SIGCONT)
    first_versions(world, running, 2)
    (world.folder / "go").touch()
    out, told = running.communicate(timeout=60)
    assert (running.returncode, out) == (0, "gone on\n"), told
    assert newest(world) == 2, told


def test_sigterm_during_a_cut_saves_and_ends(world):
    """Behind the version of the cut comes another one; the program itself gets no signal."""
    text = "import signal\nsignal.signal(15, lambda *_: print('told', flush=True))\n"
    words = program(world, text + WAITS.format(""))
    running, companion = in_a_cut(world, words)
    running.send_signal(signal.SIGTERM)
    wait_for(lambda: status_of(world, "app").get("stop_requested"), "the agent is asked")
    os.kill(companion, signal.SIGCONT)
    out, told = running.communicate(timeout=60)
    assert (running.returncode, out) == (143, ""), told
    wait_for(lambda: newest(world) >= 2, "the version behind that of the cut")
    (world.folder / "go").touch()
    done = world.run("run", "--transparent", "--job", "app", "--", *words)
    assert (done.returncode, done.stdout) == (0, "gone on\n"), done.stderr


def stands_still(pid):
    """Its thread waits for the cut to end (a futex), or it has ended."""
    try:
        with open(f"/proc/{pid}/syscall") as file:
            return file.read().startswith("202 ")
    except OSError:
        return True


def test_behind_the_last_version_the_program_does_nothing(world):
    """Of several ranks one may have ended then, and an MPI would end the job by itself."""
    running = start(world, program(world, WAITS.format("")), "--job", "app",
                    env=failpoint("rank.ended", "stop", 1) |
                    {"BACKSTAY_CHECKPOINT_POLICY": "request"})
    assert running.stdout.readline() == "begun\n"
    running.send_signal(signal.SIGTERM)
    companion = has_stopped(world, running)
    (world.folder / "go").touch()
    wait_for(lambda: all(map(stands_still, processes_of(world))), "the program stands still")
    os.kill(companion, signal.SIGCONT)
    out, told = running.communicate(timeout=60)
    assert (running.returncode, out) == (143, ""), told


def test_sigint_during_a_cut_reaches_the_program_behind_it(world):
    text = "import signal\nsignal.signal(2, lambda *_: open('go', 'w'))\n"
    running, companion = in_a_cut(world, program(world, text + WAITS.format("")))
    os.kill(processes_of(world)[0], signal.SIGINT)  # as a terminal does
    os.kill(companion, signal.SIGCONT)
    out, told = running.communicate(timeout=60)
    assert (running.returncode, out) == (0, "gone on\n"), told


def test_sigtstp_during_a_cut_stops_the_program_behind_it(world):
    running, companion = in_a_cut(world, program(world, WAITS.format("")))
    boot = processes_of(world)[0]
    os.kill(boot, signal.SIGTSTP)
    os.kill(companion, signal.SIGCONT)
    wait_for(lambda: state_of(boot) == "T", "the program stands still")
    (world.folder / "go").touch()
    os.kill(boot, signal.SIGCONT)
    out, told = running.communicate(timeout=60)
    assert (running.returncode, out) == (0, "gone on\n"), told


# More memory than the pool, so that each copy waits for the disk.
LARGE = """
import hashlib
memory = bytearray(b"".join(hashlib.sha512(b"%d" % i).digest() for i in range(1 << 20)))
for step in range(40):
    for at in range(step, len(memory), 4096): memory[at] = (memory[at] + step) % 256
    print(step, hashlib.md5(memory).hexdigest(), flush=True)
"""


def test_pool_smaller_than_the_program(world):
    world.env["BACKSTAY_POOL_SIZE_MIB"] = "16"
    killed = []

    def kill_once(running):
        wait_for(lambda: running.poll() is not None or newest(world) > 0, "a version")
        for pid in processes_of(world):
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    assert "from version" in same_output(world, {}, kill_once, program(world, LARGE))
    assert killed


def test_full_disk(world):
    """Versions do not fit; the program runs on, and the message names the room."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode != 0:
        pytest.skip("needs root and mount namespaces (unshare -m) for a small disk")
    world.dir.mkdir()
    words = program(world, LARGE)
    expected = undisturbed(words, world.folder)
    inside = f"mount -t tmpfs -o size=24m tmpfs {world.dir} && exec \"$@\""
    begun = time.monotonic()
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", inside, "sh", PROGRAM, "run", "--transparent", "--job", "app",
         "--interval", "0.2", "--", *map(str, words)],
        env=world.env, cwd=world.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=100)
    assert (done.returncode, done.stdout.encode()) == (0, expected), done.stderr
    assert "full" in done.stderr or "space" in done.stderr, done.stderr
    assert time.monotonic() - begun < 90


def test_an_agent_that_was_stopped_has_ended(world):
    """A job can begin at once. To give back so much memory takes the agent some time."""
    world.env["BACKSTAY_POOL_SIZE_MIB"] = "1024"
    assert world.run("agent", "start").returncode == 0
    pid = world.json("agent", "status")["pid"]
    process = os.pidfd_open(pid)
    try:
        assert world.run("agent", "stop", "--now").returncode == 0
        assert select.select([process], [], [], 0)[0], "the agent lives"
    finally:
        os.close(process)
