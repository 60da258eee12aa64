"""`backstay run --transparent`: programs that know nothing of Backstay, saved and brought back.

BACKSTAY_SEED repeats a run; BACKSTAY_LIVES sets how often a test ends each program.
"""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import PROGRAM, ROOT
from processes import wait_for
from transparent import (  # noqa: F401 (two are fixtures)
    LIVES, PYTHON, STEPS, WAITS, first_versions, go_on, newest, nothing_is_left, processes_of,
    program, seed, start, status_of, stop, undisturbed, versions)


def test_a_killed_program_goes_on_from_where_it_was_saved(world):
    told = go_on(world, [*program(world, STEPS), 700])
    assert "from version" in told


def test_a_killed_companion_is_a_killed_program(world):
    told = go_on(world, [*program(world, STEPS), 700], victim="backstay-companion")
    assert "from version" in told


def test_a_killed_agent_costs_versions_and_not_the_program(world):
    told = go_on(world, [*program(world, STEPS), 700], interval=0.02, victim="backstayd")
    assert "restart 1" not in told


def test_versions_after_the_loss_of_an_agent_are_good(world):
    """The next agent's pool is another one, though it may come to the same address."""
    words, out = [*program(world, STEPS), 2000], world.folder / "out"
    expected = undisturbed(words, world.folder)
    with open(out, "wb") as file:
        running = start(world, words, "--job", "app", "--interval", 0.2, "--retries", 9, out=file)
        first_versions(world, running)
        for _ in range(LIVES):
            for pid in processes_of(world, "backstayd"):
                os.kill(pid, signal.SIGKILL)
            seen = newest(world)
            wait_for(lambda: newest(world) >= seen + 3, "three newer versions")
        assert all(one["good"] for one in world.json("verify", "app")["versions"])
        for pid in processes_of(world):
            os.kill(pid, signal.SIGKILL)
        _, told = running.communicate(timeout=100)
    assert running.returncode == 0 and "restart 1 of 9 from version" in told, told
    assert out.read_bytes() == expected, told


def go_on_from_another_folder(world, words, out):
    with open(out, "ab") as file:
        done = subprocess.run(
            [PROGRAM, "run", "--transparent", "--job", "app", "--", *map(str, words)],
            env=world.env, cwd="/", stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE,
            timeout=60)
    assert done.returncode == 0, done.stderr
    assert b"goes on from version " in done.stderr


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


def areas_of(world):
    shown = world.json("show", "app")["process"]["areas"]
    return [(one["start"], one["end"], one["protection"], one["kind"]) for one in shown]


def test_a_restart_leaves_the_map_as_it_was(world):
    """Large memory is filled in huge pages; the mapping is divided for that, and is one again."""
    words = program(world, WAITS.format("data = b'x' * (41 << 20); open('ready', 'w').close()"))
    # Its first version is that of its end: a heap that grows after a version is two mappings.
    running = start(world, words, "--job", "app", "--interval", 1000)
    wait_for(lambda: running.poll() is not None or (world.folder / "ready").exists(), "its memory")
    stop(running)
    before = areas_of(world)
    again = start(world, words, "--job", "app", "--interval", 0.1)
    seen = newest(world)
    wait_for(lambda: newest(world) > seen, "a version of the restarted program")
    stop(again)
    assert areas_of(world) == before


def test_another_command_line_is_named_and_the_saved_one_goes_on(world):
    words = program(world, WAITS.format(""))
    running = start(world, [*words, "it's", "a b"], "--job", "app", "--interval", 0.1)
    first_versions(world, running)
    stop(running)
    (world.folder / "go").touch()
    # The second time from what the first one has saved: that may be behind the last line.
    for other, line in (("/bin/true", "gone on"), ("/bin/echo", "")):
        done = world.run("run", "--transparent", "--job", "app", "--interval", 0.01, "--", other)
        assert done.returncode == 0 and line in done.stdout, done
        told, = [line for line in done.stderr.splitlines() if "that was saved" in line]
        assert f"{words[1]} 'it'\\''s' 'a b'. For {other} start afresh (--fresh)" in told, told
    same = world.run("run", "--transparent", "--job", "app", "--", *words, "it's", "a b")
    assert same.returncode == 0 and "that was saved" not in same.stderr, same


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
    shown, with_map = world.run("show", "app").stdout, world.run("show", "app", "--map").stdout
    assert f"PROCESS {process['pid']} of {PYTHON}" in shown and "OPEN" in shown
    assert "ADDRESS" not in shown and f"{process['areas'][0]['start']:012x}" in with_map
    assert world.run("verify", "app").returncode == 0


def test_checkpoint_with_stop_ends_the_run(world):
    running = start(world, [*program(world, STEPS), 10**6], "--job", "app", "--interval", 1000,
                    out=subprocess.DEVNULL)
    wait_for(lambda: world.run("checkpoint", "app", "--stop").returncode == 0, "the job")
    _, told = running.communicate(timeout=60)
    assert running.returncode == 143 and "stopped; the same command starts from" in told, told
    assert "restart 1" not in told


@pytest.mark.parametrize("mode", ["wb", "ab"])
def test_output_of_a_life_without_a_version_is_not_printed_twice(world, mode):
    words, out = program(world, WAITS.format("")), world.folder / "out"
    out.write_text("before\n" if mode == "ab" else "")
    with open(out, mode) as file:
        running = start(world, words, "--job", "app", "--interval", 1000, out=file)
        wait_for(lambda: "begun" in out.read_text(), "its first line")
        for pid in processes_of(world):
            os.kill(pid, signal.SIGSTOP)  # so that it cannot end by itself
        (world.folder / "go").touch()
        for pid in processes_of(world):
            os.kill(pid, signal.SIGKILL)
        _, told = running.communicate(timeout=60)
    assert running.returncode == 0 and "from the beginning" in told, told
    assert out.read_text() == ("before\n" if mode == "ab" else "") + "begun\ngone on\n"


SAYS = """
import os, time
for step in ("two", "three"):
    print("before", step, flush=True)
    os.write(2, b"error\\n")
    open("at", "a").write(step + "\\n")
    while not os.path.exists(step):
        time.sleep(0.01)
print("end", flush=True)
"""


@pytest.mark.parametrize("mode, once", [("w", True), ("a", True), ("a", False)])
def test_what_backstay_has_said_in_the_programs_log_stays_there(world, mode, once):
    """`> log 2>&1`, or `>> log 2>> log`: a restart cuts the file back, and says it again."""
    log = world.folder / "log"
    world.env["BACKSTAY_CHECKPOINT_POLICY"] = "request"

    def come_to(*steps):
        at = world.folder / "at"
        wait_for(lambda: running.poll() is not None or
                 at.exists() and at.read_text().split() == list(steps), steps)

    with open(log, mode) as file, open(log, "a") as again:
        running = subprocess.Popen(
            list(map(str, [PROGRAM, "run", "--transparent", "--job", "app", "--",
                           *program(world, SAYS)])),
            env=world.env, cwd=world.folder, stdin=subprocess.DEVNULL, stdout=file,
            stderr=file if once else again)
    come_to("two")
    assert world.run("checkpoint", "app", "--wait").returncode == 0
    (world.folder / "two").touch()
    for life in (1, 2):
        come_to("two", *["three"] * life)
        for pid in processes_of(world):
            os.kill(pid, signal.SIGKILL)
    come_to("two", *["three"] * 3)
    (world.folder / "three").touch()
    assert running.wait(timeout=60) == 0
    lines = log.read_text().splitlines()
    assert [line for line in lines if not line.startswith("backstay")] == [
        "before two", "error", "before three", "error", "end"]
    for life in (1, 2):
        assert sum(f"restart {life} of 3" in line for line in lines) == 1, lines


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


LONG_WAIT = """
import ctypes, select, sys
libc = ctypes.CDLL(None)
pair = (ctypes.c_long * 2)(1, 500000000)
{"poll": lambda: select.poll().poll(1500), "epoll": lambda: select.epoll().poll(1.5),
 "usleep": lambda: libc.usleep(1500000), "nanosleep": lambda: libc.nanosleep(pair, None)
 }[sys.argv[1]]()
print("done")
"""


@pytest.mark.parametrize("call", ["poll", "epoll", "usleep", "nanosleep"])
def test_a_wait_that_is_longer_than_the_interval_ends(world, call):
    """Many cuts fall into it: each goes on with what is left, and so does a restart."""
    (world.folder / "app.py").write_text(LONG_WAIT)
    running = start(world, [PYTHON, world.folder / "app.py", call], "--job", "app", "--interval",
                    0.1)
    wait_for(lambda: running.poll() is not None or len(versions(world, "app")) > 1, "two versions")
    os.kill(processes_of(world)[0], signal.SIGKILL)
    out, told = running.communicate(timeout=30)
    assert (running.returncode, out) == (0, "done\n") and "restart 1 of" in told, told


def test_a_program_that_cannot_be_saved_runs_on_and_says_why(world):
    words = program(world, "import socket; ours = socket.socket()" + WAITS.format(""))
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


def test_what_kept_a_program_from_being_saved_is_not_said_after_its_end(world):
    opens = "while not os.path.exists('open'): time.sleep(0.01)\nours = socket.socket()\n"
    words = program(world, "import os, socket, time\n" + opens + WAITS.format(""))
    running = start(world, words, "--job", "app", "--interval", 3600)
    wait_for(lambda: status_of(world, "app").get("processes"), "the job's process")
    assert world.run("checkpoint", "app", "--wait").returncode == 0  # so that the job stays known
    (world.folder / "open").touch()
    assert running.stdout.readline() == "begun\n"
    running.send_signal(signal.SIGUSR1)
    wait_for(lambda: status_of(world, "app").get("cannot_save"), "the reason in the status")
    (world.folder / "go").touch()
    running.communicate(timeout=60)
    assert running.returncode == 0
    wait_for(lambda: status_of(world, "app").get("connected") == 0, "its end in the status")
    assert status_of(world, "app")["cannot_save"] is None
    assert "cannot be saved now" not in world.run("status").stdout


def test_a_program_that_its_launcher_ends_has_not_finished(world):
    """As a launcher does when another of its processes has died. What SIGTERM saves is kept."""
    words = program(world, WAITS.format(""))
    options = ["--job", "app", "--interval", 3600]
    running = start(world, words, *options, "--retries", 0)
    assert running.stdout.readline() == "begun\n"
    os.kill(processes_of(world, "backstay-companion")[-1], signal.SIGTERM)
    _, told = running.communicate(timeout=60)
    assert running.returncode == 143 and [one["version"] for one in versions(world, "app")] == [1]
    (world.folder / "go").touch()
    out, told = start(world, words, *options).communicate(timeout=60)
    assert out == "gone on\n" and "had finished" not in told, told


def test_a_signal_that_asked_the_life_before_to_end_does_not_end_the_next(world):
    text = "import os, signal\nsignal.pthread_sigmask({}, {{15}})\n"
    waits = text.format("signal.SIG_BLOCK") + "os.kill(os.getpid(), 15)\n" + WAITS.format("")
    words = program(world, waits + text.format("signal.SIG_UNBLOCK") + "print('lives')\n")
    running = start(world, words, "--job", "app", "--interval", 3600)
    assert running.stdout.readline() == "begun\n"
    stop(running)
    (world.folder / "go").touch()
    done = world.run("run", "--transparent", "--job", "app", "--", *words)
    assert (done.returncode, done.stdout) == (0, "gone on\nlives\n"), done.stderr


def test_the_example(world):
    folders = f"{Path(PROGRAM).parent}:{world.env['PATH']}"
    done = subprocess.run([ROOT / "examples/transparent/run", world.folder],
                          env={**world.env, "PATH": folders}, cwd=world.folder,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "is that of an undisturbed run" in done.stdout and "1 restart" in done.stderr


@pytest.mark.parametrize("words, why", [
    (["/bin/su"], "set-user-id"),
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
