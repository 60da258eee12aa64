"""`backstay run --transparent -- mpirun -n 4 PROGRAM`: processes that call no MPI, saved together,
killed, and brought back, each with what it had.
"""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import PROGRAM
from processes import processes, wait_for
from ranks import (
    HERE, LAUNCHERS, begin, counter, line, newest, outputs, undisturbed, wait_for_version)
from transparent import (  # noqa: F401 (two are fixtures)
    PYTHON, WAITS, nothing_is_left, processes_of, program, seed, start, status_of)

if not HERE:
    pytest.skip("no launcher is installed", allow_module_level=True)
launchers = pytest.mark.parametrize("launcher", HERE)
STEPS = 400
RANKS = 4
QUICK = ("--interval", 0.1, "--retries", 9)


def finish(running, code=0):
    out, told = running.communicate(timeout=100)
    assert code is None or running.returncode == code, told
    return told


def kill(pids, number=signal.SIGKILL):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def launchers_of(running):
    """Children of `backstay run`; agents are too."""
    found = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    return [int(pid) for pid in found
            if Path(f"/proc/{pid}/comm").read_text().startswith(("mpi", "orterun"))]


@launchers
@pytest.mark.parametrize("victim", ["program", "companion", "launcher", "agent"])
def test_all_go_on_from_one_version(world, launcher, victim):
    words = counter(world, STEPS)
    expected = undisturbed(world, launcher, RANKS, words)
    running = begin(world, launcher, RANKS, words, *QUICK)
    wait_for_version(world, running)
    kill({"program": lambda: processes_of(world, "backstay-boot")[:1],
          "companion": lambda: processes_of(world, "backstay-companion")[-1:],
          "launcher": lambda: launchers_of(running)[:1],
          "agent": lambda: processes_of(world, "backstayd")}[victim]())
    told = finish(running)
    assert outputs(world) == expected, told
    assert ("from version" in told) == (victim != "agent"), told
    version = world.json("show", "app")
    assert version["ranks"] == RANKS, version


@launchers
def test_stopped_and_started_again(world, launcher):
    words = counter(world, STEPS)
    expected = undisturbed(world, launcher, RANKS, words)
    running = begin(world, launcher, RANKS, words, "--interval", 3600)
    wait_for(lambda: len(outputs(world)) == RANKS, "all ranks")
    running.send_signal(signal.SIGTERM)
    told = finish(running, 143)
    assert "from version 1" in told, told
    wait_for(lambda: newest(world) == 1, "the version on the disk")
    listed = world.json("show", "app")
    assert listed["process"]["rank"] == 0
    assert [one["rank"] for one in listed["processes"]] == list(range(RANKS))
    assert f"rank 0 of {RANKS}; --rank N shows another" in world.run("show", "app").stdout
    shown = world.run("show", "app", "--rank", RANKS - 1).stdout
    pid = listed["processes"][-1]["pid"]
    assert f"PROCESS {pid} of " in shown and f"rank {RANKS - 1} of {RANKS}; " in shown, shown
    assert any(not text.endswith(f"of {RANKS}\n") for text in outputs(world).values())
    finish(begin(world, launcher, RANKS, words))
    assert outputs(world) == expected


@pytest.mark.skipif("mpich" not in HERE, reason="MPICH's launcher is not installed")
@pytest.mark.parametrize("setup, code", [("", 143), ("import socket; ours = socket.socket()", 1)],
                         ids=["saved", "not saved"])
def test_mpichs_own_code_of_a_rank_that_has_left(world, setup, code):
    """Its launcher ends with 1 at times, where a rank has gone without a word to it."""
    launcher = world.folder / "mpiexec.mpich"
    launcher.write_text(f'#!/bin/sh\n{shutil.which(launcher.name)} "$@"\nexit 1\n')
    launcher.chmod(0o700)
    waits = f"import os, time\n{setup}\nopen('at.' + os.environ['PMI_RANK'], 'w')\ntime.sleep(99)"
    words = [launcher, "-n", 2, PYTHON, "-c", waits]
    running = start(world, words, "--job", "app", "--interval", 3600)
    wait_for(lambda: len(list(world.folder.glob("at.*"))) == 2, "all ranks")
    running.send_signal(signal.SIGTERM)
    finish(running, code)


@launchers
def test_signals_and_requests_save_one_version_of_all(world, launcher):
    words = counter(world, 10**6)
    running = begin(world, launcher, RANKS, words, "--interval", 3600)
    wait_for(lambda: len(status_of(world, "app").get("processes", [])) == RANKS, "all ranks")
    assert world.run("checkpoint", "app").returncode == 0
    wait_for_version(world, running)
    running.send_signal(signal.SIGUSR1)
    wait_for_version(world, running, above=1)
    assert newest(world) == 2
    kill(processes_of(world, "backstay-companion")[2:3], signal.SIGUSR1)  # any rank's does
    wait_for_version(world, running, above=2)
    assert world.run("checkpoint", "app", "--stop").returncode == 0
    finish(running, 143)


@launchers
def test_a_rank_that_has_ended_is_saved_as_such(world, launcher):
    words = counter(world, STEPS, 1, 2)
    expected = undisturbed(world, launcher, RANKS, words)
    running = begin(world, launcher, RANKS, words, *QUICK)
    wait_for(lambda: outputs(world).get("out.1", "").endswith("of 4\n"), "rank 1's end")
    wait_for_version(world, running, above=newest(world) + 1)
    kill(processes_of(world, "backstay-boot")[:1])
    told = finish(running)
    assert "from version" in told and outputs(world) == expected, told


@launchers
def test_exit_codes_are_the_programs(world, launcher):
    script = "[ ${PMI_RANK:-$OMPI_COMM_WORLD_RANK} != 2 ] || exit 7"
    done = world.run("run", "--transparent", "--retries", 0, "--job", "app", "--",
                     *line(launcher, RANKS, "/bin/sh", "-c", script))
    assert done.returncode == 7, done
    done = world.run("run", "--transparent", "--job", "app", "--fresh", "--",
                     *line(launcher, RANKS, "/bin/true"))
    assert done.returncode == 0, done


@launchers
def test_another_number_of_ranks_is_refused(world, launcher):
    words = counter(world, 10**6)
    running = begin(world, launcher, RANKS, words, *QUICK)
    wait_for_version(world, running)
    running.send_signal(signal.SIGTERM)
    finish(running, 143)
    told = finish(begin(world, launcher, 2, words), 78)
    assert "was saved by 4 ranks, and this program has 2" in told and "restart 1" not in told, told


@launchers
def test_one_rank_that_cannot_be_saved_is_named_and_all_run_on(world, launcher):
    text = ("import socket, os; ours = socket.socket() if '2' in (os.environ.get('PMI_RANK'), "
            "os.environ.get('OMPI_COMM_WORLD_RANK')) else 0")
    words = program(world, text + WAITS.format(""))
    running = start(world, line(launcher, RANKS, *words), "--job", "app", "--interval", 0.1)
    said = running.stderr.readline()
    assert "cannot be saved now, because rank 2: descriptor" in said and "socket" in said, said
    assert "rank 2" in wait_for(lambda: status_of(world, "app").get("cannot_save"), "the reason")
    (world.folder / "go").touch()
    out, told = running.communicate(timeout=60)
    assert (running.returncode, out.count("gone on")) == (0, RANKS), told
    assert "cannot be saved now" not in told, told


@launchers
def test_without_backstay_run_the_ranks_run_on_unsaved(world, launcher):
    words = counter(world, STEPS)
    expected = undisturbed(world, launcher, RANKS, words)
    running = begin(world, launcher, RANKS, words, *QUICK)
    wait_for_version(world, running)
    running.kill()
    wait_for(lambda: outputs(world) == expected, "the end of all ranks")
    told = running.communicate(timeout=60)[1]
    assert told.count("`backstay run` is gone: the program runs on") == 1, told


@launchers
def test_ranks_without_backstay_run_are_taken_over(world, launcher):
    words = counter(world, 2 * STEPS)
    expected = undisturbed(world, launcher, RANKS, words)
    running = begin(world, launcher, RANKS, words, *QUICK)
    wait_for_version(world, running)
    running.kill()
    running.wait()
    told = finish(begin(world, launcher, RANKS, words, *QUICK, "--take-over"))
    assert "ended rank" in told, told
    assert outputs(world) == expected


@pytest.mark.skipif("openmpi" not in HERE, reason="Open MPI is missing")
def test_a_launcher_that_does_not_end_its_other_ranks_is_ended(world):
    """As srun does not, and Open MPI with this setting."""
    script = '[ $OMPI_COMM_WORLD_RANK = 0 ] && exit 3; exec "$@"'
    words = ["--mca", "orte_abort_on_non_zero_status", 0, "-n", 2, "/bin/sh", "-c", script, "sh"]
    running = start(world, [*LAUNCHERS["openmpi"], *words, *counter(world, 10**6)], "--job", "app",
                    "--retries", 0, "--interval", 0.1)
    told = finish(running, None)
    assert re.search("rank 0 on .* has ended with exit code 3, and the launcher lets the others "
                     "run; it is ended", told), told
    assert running.returncode != 0


@launchers
def test_the_secret_is_on_no_command_line_and_not_in_the_program(world, launcher):
    words = counter(world, 10**6)
    running = begin(world, launcher, 2, words, *QUICK)
    wait_for_version(world, running)
    secrets = set()
    for pid in processes_of(world, "backstay-companion"):
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        secrets |= {one.partition(b"=")[2] for one in variables
                    if one.startswith(b"BACKSTAY_MEETING_SECRET=")}
    assert len(secrets) == 1
    secret = secrets.pop()
    assert not [pid for pid, line_of in processes() if any(secret in word for word in line_of)]
    for pid in processes_of(world, "backstay-boot") + processes_of(world, "backstayd"):
        assert secret not in Path(f"/proc/{pid}/environ").read_bytes()
    running.send_signal(signal.SIGTERM)
    finish(running, 143)


COMPANION = Path(PROGRAM).resolve().parent.parent / "capture/companion/backstay-companion"


def companion(world, *words, **variables):
    env = {**world.env, **{name: str(value) for name, value in variables.items()}}
    return subprocess.run([str(COMPANION), *words], env=env, cwd=world.folder,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


def test_what_the_launcher_has_not_set_is_named(world):
    for variables, named in (({}, "PMI_RANK"), ({"PMI_RANK": 0}, "PMI_SIZE"),
                             ({"PMI_RANK": 3, "PMI_SIZE": 2}, "PMI_RANK is 3"),
                             ({"PMI_RANK": 0, "PMI_SIZE": 1}, "BACKSTAY_MEETING is not set")):
        done = companion(world, "--launcher", "mpich", "--", "/bin/true", **variables)
        assert done.returncode == 1 and named in done.stderr, done
    assert companion(world, "--launcher", "aprun", "--", "/bin/true").returncode == 2


@pytest.mark.parametrize("words, why", [
    (["aprun", "-n", "2", "/bin/true"], "aprun is none of them"),
    (["mpiexec.mpich", "-configfile", "plan"], "has its programs in plan"),
    (["mpiexec.mpich", "-hosts", "a,b", "-n", "1", "/bin/true", ":", "-n", "1", "/bin/true"],
     "several programs"),
])
def test_refuses_by_name(world, words, why):
    if words[0] == "mpiexec.mpich" and "mpich" not in HERE:
        pytest.skip("MPICH is missing")
    if words[0] == "aprun":
        (world.folder / "aprun").write_text("#!/bin/sh\n")
        (world.folder / "aprun").chmod(0o755)
        world.env["PATH"] = f"{world.folder}:{world.env['PATH']}"
    done = world.run("run", "--transparent", "--job", "app", "--", *words)
    assert done.returncode == 2 and why in done.stderr, done.stderr


@launchers
def test_several_programs_on_this_host(world, launcher):
    words = counter(world, STEPS)
    other = line(launcher, 1, *counter(world, STEPS, 1))[1:]
    if launcher == "openmpi":
        other = other[1:]
    whole = [*line(launcher, 1, *words), ":", *other]
    running = start(world, whole, "--job", "app", *QUICK)
    wait_for_version(world, running)
    kill(processes_of(world, "backstay-boot")[:1])
    told = finish(running)
    assert "from version" in told, told
    assert [text.endswith("of 2\n") for text in outputs(world).values()] == [True, True]


@launchers
def test_a_refused_program_is_told_once(world, launcher):
    done = world.run("run", "--transparent", "--job", "app", "--",
                     *line(launcher, RANKS, "/bin/su"))
    assert done.returncode == 126 and "set-user-id" in done.stderr, done.stderr
    assert "restart 1" not in done.stderr, done.stderr
