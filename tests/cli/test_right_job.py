"""Which job a command goes on with: the names of scripts, --fresh, refusals, and what a finished
job says.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import ROOT

pytest.importorskip("numpy")
sys.path.insert(0, str(ROOT / "python"))
try:
    from backstay import _session  # noqa: F401  (the binding, built with the library)
except ImportError:
    pytest.skip("the binding of Python was not built", allow_module_level=True)

# Goes on from what it finds, adds 1 to all of it and saves. FAIL: attempts that fail, and when.
PROGRAM = """
import os, sys
import numpy as np
import backstay
fails = os.environ.get("FAIL", "").split()
attempt = os.environ.get("BACKSTAY_ATTEMPT", "")
with backstay.init():
    u = np.zeros(int(os.environ.get("SIZE", "4")))
    backstay.protect("u", u)
    found = backstay.restart()
    print("from", found, "with", u[0], flush=True)
    if "early" + attempt in fails:
        os._exit(9)
    u += 1
    backstay.checkpoint()
    if "late" + attempt in fails:
        os._exit(9)
"""


@pytest.fixture
def scripts(world):
    """sor.py and other.py, the same, in the world's folder."""
    for name in ("sor.py", "other.py"):
        (world.folder / name).write_text(PROGRAM)
    world.env.update(PYTHONPATH=str(ROOT / "python"), PYTHONDONTWRITEBYTECODE="1",
                     BACKSTAY_CHECKPOINT_WAIT_AT_END="true")
    return world


def begun(done):
    """What each attempt found: (version or None, value)."""
    found = re.findall(r"^from (\w+) with ([\d.]+)$", done.stdout, re.M)
    return [(None if version == "None" else int(version), float(value)) for version, value in found]


def jobs(world):
    return sorted(path.name for path in world.dir.iterdir()) if world.dir.exists() else []


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("front", ["{python}", "env A=b {python} -u", "time -p {python}"])
def test_two_scripts_of_an_interpreter_are_two_jobs(scripts, front):
    words = front.format(python=sys.executable).split()
    if not shutil.which(words[0]):
        pytest.skip(f"no {words[0]} here")
    for script in ("sor.py", "other.py"):
        done = scripts.run("run", "--", *words, script)
        assert done.returncode == 0 and begun(done) == [(None, 0.0)], done
    assert jobs(scripts) == ["other", "sor"]


def test_modules_are_jobs_of_their_own_and_the_bare_program_agrees(scripts):
    done = scripts.run("run", "--", sys.executable, "-m", "sor")
    assert begun(done) == [(None, 0.0)] and jobs(scripts) == ["sor"], done
    (scripts.folder / "sor.py").chmod(0o755)
    (scripts.folder / "sor.py").write_text(f"#!{sys.executable}\n" + PROGRAM)
    assert begun(scripts.run("run", "--", "./sor.py")) == [(1, 1.0)]
    assert begun(scripts.run("run", "--", sys.executable, "sor.py")) == [(2, 2.0)]


def test_bash_scripts_are_jobs_of_their_own(world):
    for name in ("one.sh", "two.sh"):
        (world.folder / name).write_text('echo "$BACKSTAY_JOB $BACKSTAY_PROGRAM"\n')
        assert world.run("run", "--", "bash", "-eu", name).stdout == f"{name} {name}\n"


@pytest.mark.parametrize("words", [["-c", "pass"], ["-"], []])
def test_an_interpreter_without_a_script_needs_a_name(world, words):
    done = world.run("run", "--", sys.executable, *words)
    assert done.returncode == 2 and "backstay run --job NAME" in done.stderr, done
    assert world.run("run", "--job", "x", "--", sys.executable, *words).returncode == 0


def test_a_version_knows_its_program(scripts):
    scripts.run("run", "--", sys.executable, "sor.py")
    assert scripts.json("show", "sor")["program"] == "sor"
    assert "  saved by sor\n" in scripts.run("show", "sor").stdout
    assert [region["name"] for region in scripts.json("show", "sor")["regions"]] == ["u"]


@pytest.mark.parametrize("under_run", [True, False])
def test_another_program_is_refused_under_a_default_name_only(scripts, under_run):
    """other.py was started under the name of sor's job first; a rebuilt sor.py is the same program.
    """
    scripts.run("run", "--job", "sor", "--", sys.executable, "other.py")
    before = sorted(os.listdir(scripts.dir / "sor"))
    if under_run:
        done = scripts.run("run", "--", sys.executable, "sor.py")
    else:
        done = subprocess.run([sys.executable, "sor.py"], env=scripts.env, cwd=scripts.folder,
                              capture_output=True,
                              text=True, timeout=60)
    assert done.returncode != 0 and begun(done) == [], done
    for word in ("'other'", "'sor'", "--job", "--fresh", "backstay rm sor --all"):
        assert word in done.stderr, done.stderr
    assert [name for name in before if name.startswith("v")] == [
        name for name in sorted(os.listdir(scripts.dir / "sor")) if name.startswith("v")]
    assert begun(scripts.run("run", "--job", "sor", "--", sys.executable, "sor.py")) == [(1, 1.0)]
    (scripts.folder / "sor.py").write_text(PROGRAM + "\n# rebuilt\n")
    assert begun(scripts.run("run", "--", sys.executable, "sor.py")) == [(2, 2.0)]


# --- --fresh -------------------------------------------------------------------------------------


def test_fresh_begins_anew_and_keeps_what_there_was(scripts):
    words = ["--", sys.executable, "sor.py"]
    for _ in range(2):
        scripts.run("run", *words)
    done = scripts.run("run", "--fresh", *words)
    assert done.returncode == 0 and begun(done) == [(None, 0.0)], done
    assert [entry["version"] for entry in scripts.json("ls", "sor")["versions"]][-1] == 3
    assert begun(scripts.run("run", *words)) == [(3, 1.0)]  # a plain start goes on from the newest


@pytest.mark.parametrize("fail, expected", [
    ("early0", [(None, 0.0), (None, 0.0)]),
    ("late0 early1", [(None, 0.0), (2, 1.0), (2, 1.0)]),
    ("late0 late1", [(None, 0.0), (2, 1.0), (3, 2.0)])])
def test_fresh_holds_for_all_attempts(scripts, fail, expected):
    scripts.run("run", "--", sys.executable, "sor.py")
    done = scripts.run("run", "--fresh", "--", sys.executable, "sor.py", env={"FAIL": fail})
    assert done.returncode == 0 and begun(done) == expected, done
    places = re.findall(r"restart \d of \d from (the beginning|version \d)", done.stderr)
    assert places == [f"version {version}" if version else "the beginning" for version,
                      _ in expected[1:]], done.stderr


def test_fresh_passes_over_another_program_and_other_shapes(scripts):
    scripts.run("run", "--job", "sor", "--", sys.executable, "other.py")
    assert begun(scripts.run("run", "--fresh", "--", sys.executable, "sor.py")) == [(None, 0.0)]
    done = scripts.run("run", "--fresh", "--", sys.executable, "sor.py", env={"SIZE": "9"})
    assert done.returncode == 0 and begun(done) == [(None, 0.0)], done


# --- ends and refusals ---------------------------------------------------------------------------


def finished_lines(done):
    return [line for line in done.stderr.splitlines() if "had finished" in line]


def test_a_finished_job_says_so_once_and_goes_on(scripts):
    words = ["--", sys.executable, "sor.py"]
    assert finished_lines(scripts.run("run", *words)) == []
    done = scripts.run("run", *words)
    assert begun(done) == [(1, 1.0)] and len(finished_lines(done)) == 1, done
    for word in ("job sor", "version 1", "--fresh", "backstay rm sor --all"):
        assert word in finished_lines(done)[0]
    scripts.run("agent", "stop", "--now")  # another agent knows it from the log
    done = scripts.run("run", *words)
    assert begun(done) == [(2, 2.0)] and len(finished_lines(done)) == 1, done
    assert finished_lines(scripts.run("run", "--fresh", *words)) == []


def test_a_job_that_failed_has_not_finished(scripts):
    words = ["--", sys.executable, "sor.py"]
    assert scripts.run("run", "--retries", 0, *words, env={"FAIL": "late0"}).returncode == 9
    done = scripts.run("run", *words, env={"FAIL": "early0"})
    assert done.returncode == 0 and begun(done) == [(1,
                                                     1.0)] * 2 and finished_lines(done) == [], done


@pytest.mark.parametrize("end, finished",
                         [("raise ValueError('no')", False), ("sys.exit(3)", False),
                          ("sys.exit('no')", False),
                                           ("sys.exit()", True), ("sys.exit(0)", True)])
def test_a_session_that_an_error_ends_has_not_finished(scripts, end, finished):
    (scripts.folder / "sor.py").write_text(PROGRAM + f"    {end}\n")
    done = scripts.run("run", "--retries", 0, "--json", "--", sys.executable, "sor.py")
    said = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert (done.returncode == 0) == finished and said[-1]["failures"] == (0 if finished
        else 1), done
    (scripts.folder / "sor.py").write_text(PROGRAM)
    done = scripts.run("run", "--", sys.executable, "sor.py")
    assert begun(done) == [(1, 1.0)] and bool(finished_lines(done)) == finished, done


def test_a_job_that_was_asked_to_stop_has_not_finished(scripts):
    (scripts.folder / "sor.py").write_text(PROGRAM
                                           + "    while not backstay.stop_requested():\n        "
                                             "backstay.due()\n")
    running = subprocess.Popen([sys.executable, "sor.py"], env=scripts.env, cwd=scripts.folder,
                               stdout=subprocess.PIPE,
                               text=True)
    try:
        running.stdout.readline()
        assert scripts.run("checkpoint", "sor", "--stop").returncode == 0
        running.communicate(timeout=30)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 0
    (scripts.folder / "sor.py").write_text(PROGRAM)
    done = scripts.run("run", "--", sys.executable, "sor.py")
    assert begun(done) == [(1, 1.0)] and finished_lines(done) == [], done


def test_a_refused_restart_is_not_tried_again(scripts):
    words = ["--", sys.executable, "sor.py"]
    scripts.run("run", *words)
    done = scripts.run("run", *words, env={"SIZE": "9"})
    assert done.returncode == 1 and begun(done) == [], done
    assert "not tried again" in done.stderr and "restart 1 of" not in done.stderr, done.stderr
    assert "float64[4]" in done.stderr and "--fresh" in done.stderr
    assert done.stderr.count("Traceback") == 1
    # An old refusal says nothing about a later failure.
    done = scripts.run("run", "--retries", 1, *words, env={"FAIL": "early0"})
    assert done.returncode == 0 and "restart 1 of 1" in done.stderr and finished_lines(done) == [], done


def test_a_refusal_is_in_the_json_of_run_and_in_the_event_log(scripts):
    words = ["--", sys.executable, "sor.py"]
    scripts.run("run", "--job", "sor", "--", sys.executable, "other.py")
    done = scripts.run("run", "--json", *words)
    said = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert "refused" in [one["event"] for one in said] and "restart" not in [one["event"] for one
        in said]
    scripts.run("agent", "stop")
    log = [json.loads(line) for line
           in (scripts.dir / "sor" / "events.jsonl").read_text().splitlines()]
    assert [one["how"] for one in log if one["event"] == "run_end"] == ["finished", "refused"]
    assert [one["code"] for one in log if one["event"] == "refused"] == ["mismatch"]


# --- two at once ---------------------------------------------------------------------------------

WAITS = PROGRAM.replace("import os, sys", "import os, sys, time") + """
    while not os.path.exists("gate"):
        time.sleep(0.01)
"""


def begin(scripts, *words):
    """The program runs and has said where it began."""
    running = scripts.popen("run", *words, "--", sys.executable, "sor.py")
    assert running.stdout.readline().startswith("from ")
    return running


def ended(running):
    try:
        said = running.communicate(timeout=30)[1]
    finally:
        running.kill()
    return running.returncode, said


def test_a_job_that_another_agent_serves_is_refused_and_not_tried_again(scripts):
    (scripts.folder / "sor.py").write_text(WAITS)
    first = begin(scripts)
    other = {"BACKSTAY_AGENT_SOCKET": str(scripts.folder / "other" / "s")}
    second = scripts.run("run", "--", sys.executable, "sor.py", env=other)
    (scripts.folder / "gate").touch()
    assert second.returncode == 7 and "another agent" in second.stderr and "restart 1" not in second.stderr, second
    assert ended(first)[0] == 0


def test_a_run_that_was_taken_over_stays_away(scripts):
    (scripts.folder / "sor.py").write_text(WAITS)
    first = begin(scripts)
    second = begin(scripts, "--take-over")
    code, said = ended(first)
    (scripts.folder / "gate").touch()
    assert code != 0 and ("was taken over" in said or "not tried again" in said), said
    assert ended(second)[0] == 0


# --- rm --all ------------------------------------------------------------------------------------


def test_rm_all_removes_the_newest_too_and_the_job_begins_anew(scripts):
    words = ["--", sys.executable, "sor.py"]
    for _ in range(2):
        scripts.run("run", *words)
    assert scripts.json("rm", "sor", "--all", "--dry-run")["removed"] == [1, 2]
    assert scripts.json("rm", "sor", "--all")["removed"] == [1, 2]  # the agent still runs
    assert begun(scripts.run("run", *words)) == [(None, 0.0)]


def test_rm_all_is_refused_while_the_job_runs(scripts):
    (scripts.folder / "sor.py").write_text(PROGRAM + "    sys.stdin.read()\n")
    running = subprocess.Popen([sys.executable, "sor.py"], env=scripts.env, cwd=scripts.folder,
                               stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    try:
        running.stdout.readline()
        done = scripts.run("rm", "sor", "--all")
        assert done.returncode == 7 and "is running" in done.stderr and "nothing was removed" in done.stderr, done
    finally:
        running.communicate("", timeout=30)
    assert running.returncode == 0
    assert scripts.json("rm", "sor", "--all")["removed"] == [1]


def remove_by_hand(scripts):
    log = scripts.dir / "sor" / "events.jsonl"
    deadline = time.monotonic() + 20
    while '"run_end"' not in log.read_text():  # what the agent writes last
        assert time.monotonic() < deadline, "the run does not end"
        time.sleep(0.01)
    shutil.rmtree(scripts.dir / "sor")


def test_rm_all_makes_the_agent_forget_what_was_removed_by_hand(scripts):
    scripts.run("run", "--", sys.executable, "sor.py")
    remove_by_hand(scripts)
    assert scripts.json("rm", "sor", "--all")["removed"] == [1]
    assert scripts.run("rm", "sor", "--all").returncode == 3


def test_a_job_that_was_removed_by_hand_begins_anew(scripts):
    words = ["--", sys.executable, "sor.py"]
    scripts.run("run", *words)
    remove_by_hand(scripts)
    done = scripts.run("run", *words)
    assert begun(done) == [(None, 0.0)] and finished_lines(done) == [], done
    assert begun(scripts.run("run", *words)) == [(2, 1.0)]


def test_all_and_a_version_are_refused_together(scripts):
    scripts.run("run", "--", sys.executable, "sor.py")
    done = scripts.run("rm", "sor", "--all", 1)
    assert done.returncode == 2 and "contradict" in done.stderr, done
    assert begun(scripts.run("run", "--", sys.executable, "sor.py")) == [(1, 1.0)]


# --- another run that is alive -------------------------------------------------------------------

# As a rank whose launcher was killed before it came to its first call: it connects late.
LATE = """
import os, signal, time
import backstay
while not os.path.exists("go"):
    time.sleep(0.01)
with backstay.init():
    open("connected", "w").close()
    signal.pause()
"""
# Begins once the other one has connected.
AFTER_LATE = """
import os, time
open("go", "w").close()
while not os.path.exists("connected"):
    time.sleep(0.01)
import backstay
with backstay.init():
    print("has the job", flush=True)
"""


@pytest.mark.parametrize("options, code", [(["--take-over"], 0), ([], 7)])
def test_a_rank_that_connects_late_is_ended_by_take_over_alone(scripts, options, code):
    (scripts.folder / "late.py").write_text(LATE)
    (scripts.folder / "sor.py").write_text(AFTER_LATE)
    late = subprocess.Popen([sys.executable, "late.py"], cwd=scripts.folder,
                            env={**scripts.env, "BACKSTAY_JOB": "sor"})
    try:
        done = scripts.run("run", *options, "--", sys.executable, "sor.py")
        assert done.returncode == code, done
        assert ("has the job" in done.stdout) == (code == 0), done
        assert ("backstay run: ended rank 0" in done.stderr) == (code == 0), done
        assert (late.poll() is None) == (code != 0)
    finally:
        late.kill()
        late.wait()


# --- what stands in the place of our files -------------------------------------------------------


def test_a_pipe_in_the_place_of_the_event_log_does_not_stop_a_run(scripts):
    (scripts.dir / "sor").mkdir(parents=True)
    for name in ("events.jsonl", "events.1.jsonl"):
        os.mkfifo(scripts.dir / "sor" / name)
    done = scripts.run("run", "--", sys.executable, "sor.py")
    assert done.returncode == 0 and begun(done) == [(None, 0.0)], done
