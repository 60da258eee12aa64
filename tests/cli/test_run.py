"""`backstay run` with programs that do not use Backstay: exit codes, restarts, signals, leftovers.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess

import pytest
from conftest import PROGRAM, ROOT, press
from processes import wait_for_end


def events(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def script(world, text):
    path = world.folder / "program"
    path.write_text("#!/bin/bash\n" + text)
    path.chmod(0o755)
    return path


def test_passes_output_environment_and_success_on(world):
    program = script(world, 'echo "$BACKSTAY_JOB $BACKSTAY_ATTEMPT $BACKSTAY_DIR"; cat\n')
    done = world.run("run", "--", program)
    assert done.returncode == 0 and done.stdout == f"program 0 {world.dir}\n"
    assert all(line.startswith("backstay run: ") for line in done.stderr.splitlines()), done.stderr
    assert world.run("run", "--job", "other", "--", program).stdout.startswith("other 0 ")


@pytest.mark.parametrize("text, code", [("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)])
def test_restarts_then_passes_the_exit_code_on(world, text, code):
    program = script(world, f'echo "attempt $BACKSTAY_ATTEMPT"; {text}\n')
    done = world.run("run", "--retries", 1, "--json", "--", program)
    assert done.returncode == code and done.stdout == "attempt 0\nattempt 1\n"
    restart, gave_up, _ = events(done.stderr)
    assert restart["event"] == "restart" and restart["exit_code"] == code and "from the beginning" in restart["text"]
    assert gave_up["event"] == "gave_up"


@pytest.mark.parametrize("stderr", ["2>/dev/full", "2>&-", "2> >(true)"])
def test_goes_on_where_nobody_hears_what_it_says(world, stderr):
    program = script(world, f'echo start >>{world.folder}/starts; sleep 0.1; exit 3\n')
    words = ["bash", "-c", f'"$0" run --retries 1 -- "$1" {stderr}', PROGRAM, program]
    done = subprocess.run(words, env=world.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 3 and (world.folder / "starts").read_text() == "start\n" * 2


def test_stops_restarting_when_nothing_new_is_saved(world):
    program = script(world, 'echo x; exit 3\n')
    done = world.run("run", "--retries", 10, "--", program)
    assert done.returncode == 3 and done.stdout == "x\n" * 3
    assert "before they saved a new version" in done.stderr


NO_FOLDER = "the folder of the versions cannot be used: "


def read_only(world, command):
    """The words that run a shell command in which the world's folder of versions is read-only."""
    world.dir.mkdir(exist_ok=True)
    words = ["unshare", "-rm", "bash", "-c",
             'mount --bind -o ro "$BACKSTAY_DIR" "$BACKSTAY_DIR" && "$@"', "-"]
    tried = subprocess.run([*words, "true"], env=world.env, capture_output=True, check=False)
    if tried.returncode != 0:
        pytest.skip("nothing can be mounted here")
    return [*words, *map(str, command)]


def test_a_read_only_folder_of_versions_starts_nothing(world):
    program = script(world, "echo started; exit 3\n")
    done = subprocess.run(read_only(world, [PROGRAM, "run", "--", program]), env=world.env,
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and done.stdout == "", done
    assert NO_FOLDER in done.stderr and "Read-only file system" in done.stderr, done.stderr
    assert "set storage.dir" in done.stderr and str(world.dir) in done.stderr, done.stderr


def test_a_folder_of_versions_that_cannot_be_made_starts_nothing(world):
    program = script(world, "echo started; exit 3\n")
    (world.folder / "plain").write_text("")
    done = world.run("run", "--", program, env={"BACKSTAY_DIR": f"{world.folder}/plain/versions"})
    assert done.returncode == 2 and done.stdout == "", done
    assert NO_FOLDER in done.stderr and "Not a directory" in done.stderr, done.stderr


def test_a_folder_of_versions_that_goes_away_ends_the_restarts(world):
    program = script(world, 'echo started; rm -r "$BACKSTAY_DIR"; : >"$BACKSTAY_DIR"; exit 3\n')
    done = world.run("run", "--", program)
    assert done.returncode == 3 and done.stdout == "started\n", done
    assert "not tried again, as it would be refused again: " + NO_FOLDER in done.stderr, done.stderr


def test_says_which_version_it_comes_back_from(world):
    world.golden("program")  # its records name another job: it does not count
    program = script(world, "exit 3\n")
    assert "from the beginning" in world.run("run", "--retries", 1, "--", program).stderr
    world.golden()
    done = world.run("run", "--retries", 1, "--job", "golden", "--", program)
    assert "restart 1 of 1 from version 12, captured" in done.stderr and "on the disk" in done.stderr


def test_success_after_a_restart(world):
    program = script(world, '[ "$BACKSTAY_ATTEMPT" -ge 1 ]\n')
    done = world.run("run", "--", program)
    assert done.returncode == 0 and "ended with exit code 0 after 1 restart" in done.stderr


def test_says_what_makes_a_program_save(world):
    program = script(world, "exit 0\n")
    told = world.run("run", "--", program).stderr
    assert "no rank called Backstay" in told and "backstay_checkpoint();" in told, told
    assert "--transparent" in told and "--capture-files" in told, told
    end = events(world.run("run", "--json", "--", program).stderr)[-1]
    assert end["event"] == "end" and end["versions"] == 0 and "no rank called" in end[
        "why_no_version"]
    assert end["newest_level"] == "none"
    assert end["called_backstay"] is False
    assert "backstay" not in world.run("run", "--quiet", "--", program).stderr
    missing = world.run("run", "--job", "x", "--", "/nowhere/program")
    assert "no rank" not in missing.stderr, "it never ran"


def test_a_program_that_fails_before_it_calls_backstay_is_told_so_once(world):
    done = world.run("run", "--retries", 1, "--", script(world, "exit 7\n"))
    said = "it failed (exit code 7) before it called Backstay"
    assert done.returncode == 7 and done.stderr.count(said) == 1, done.stderr
    assert "backstay_checkpoint();" not in done.stderr


@pytest.mark.skipif(not shutil.which("mpirun.openmpi"), reason="Open MPI is missing")
@pytest.mark.parametrize("place", ["environment", "home", "file"])
def test_open_mpi_that_has_a_list_of_variables_already(world, place):
    """It refuses -x then."""
    file = world.folder / ".openmpi" / "mca-params.conf"
    file.parent.mkdir()
    if place != "environment":
        file.write_text("mca_base_env_list = AA=1;BB\n")
    env = {"BB": "2"}
    if place == "file":
        file = file.rename(world.folder / "params")
        env["OMPI_MCA_mca_base_param_files"] = str(file)
    if place == "environment":
        env["OMPI_MCA_mca_base_env_list"] = "AA=1;BB"
    done = world.run("run", "--job", "a", "--retries", 0, "--remote-shell", "off", "--",
                     "mpirun.openmpi", "--oversubscribe", "--host", f"{socket.gethostname()}:2",
                     "-n", 2, "sh", "-c", "echo $AA $BB $BACKSTAY_JOB", env=env)
    assert done.returncode == 0 and done.stdout == "1 2 a\n" * 2, done


def test_a_launcher_without_a_program_says_so(world):
    done = world.run("run", "--", "env", "nice", "./nowhere")
    assert done.returncode == 2 and "is its path right?" in done.stderr and "--job" in done.stderr


@pytest.mark.skipif(not shutil.which("mpirun.openmpi"), reason="Open MPI is missing")
def test_a_launcher_that_starts_nothing_is_not_tried_again_and_its_words_stand_alone(world):
    run = ("run", "--job", "a", "--retries", 1)
    many = ("--", "mpirun.openmpi", "-n", 1000, "true")
    alone = world.run(*run, *many)
    assert alone.returncode != 0 and "not enough slots" in alone.stderr, alone
    assert "backstay" not in alone.stderr and alone.stderr.count("not enough slots") == 1
    assert [one["event"] for one in events(world.run(*run, "--json", *many).stderr)] == [
        "not_started", "end"]
    failed = world.run(*run, "--", "mpirun.openmpi", "--oversubscribe", "-n", 2, "false")
    assert "restart 1 of 1" in failed.stderr, failed.stderr


def test_sigpipe_does_what_it_did_before(world):
    program = script(world, "grep SigIgn /proc/self/status\n")
    for ignored in (False, True):
        done = world.run("run", "--", program, restore_signals=not ignored)
        mask = int(done.stdout.split()[1], 16)
        assert bool(mask & 1 << (signal.SIGPIPE - 1)) == ignored, done


def test_a_program_that_does_not_exist_is_not_retried(world):
    done = world.run("run", "--job", "x", "--", "/nowhere/program")
    assert done.returncode == 127 and "/nowhere/program" in done.stderr and "restart" not in done.stderr
    done = world.run("run", "--", "no-such-program-anywhere")
    assert done.returncode == 127 and "no-such-program-anywhere was not found" in done.stderr, done
    assert world.run("run", "--", "/etc/passwd").returncode == 126
    (world.folder / "plain").write_text("x")
    assert world.run("run", "--job", "x", "--", "./plain").returncode == 126


def test_a_file_of_hosts_that_is_none(world):
    """The launcher is known by its name; it is not started."""
    for path, why in ((world.folder, "Is a directory"),
                      (world.folder / "none", "No such file or directory")):
        done = world.run("run", "--job", "a", "--hosts", path, "--", "mpirun.openmpi", "-n", 2,
                         "true")
        assert done.returncode != 0 and done.stderr == f"backstay: read the file of hosts {path}: {why}\n"


def test_a_job_name_is_needed_and_checked(world):
    done = world.run("run", "--", "env", "no-such-program")  # which of the words is the program?
    assert done.returncode == 2 and "--job" in done.stderr
    assert world.run("run", "--job", "a/b", "--", "true").returncode == 2


def started(world, program, *options):
    running = world.popen("run", *options, "--", program)
    assert running.stdout.readline() == "ready\n"
    return running


TRAPS = """
for s in INT TERM USR1; do trap "echo $s; [ $s = USR1 ] || exit 0" $s; done
echo ready
while :; do sleep 0.05; done
"""


def test_sigint_goes_to_the_program_and_ends_it_without_a_restart(world):
    running = started(world, script(world, TRAPS))
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=30)
    assert running.returncode == 0 and out == "INT\n"


def test_signals_go_to_a_program_that_the_agent_does_not_know(world):
    running = started(world, script(world, TRAPS))
    running.send_signal(signal.SIGUSR1)
    assert running.stdout.readline() == "USR1\n"
    running.send_signal(signal.SIGTERM)
    out, error = running.communicate(timeout=30)
    assert running.returncode == 0 and out == "TERM\n" and "stopped" in error


def test_a_failure_after_sigterm_is_not_restarted(world):
    running = started(world,
                      script(world,
                             "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done\n"))
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=30)
    assert running.returncode == 9


def test_a_deaf_program_is_killed_in_the_end(world):
    running = started(world,
                      script(world, "trap '' INT TERM; echo ready; while :; do sleep 0.05; done\n"))
    press(running)  # asking again is not waited for
    running.communicate(timeout=30)
    assert running.returncode == 137


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_what_the_launcher_leaves_behind_is_ended_before_the_restart(world):
    # A "rank" in a session of its own survives its launcher.
    program = script(world, """
if [ "$BACKSTAY_ATTEMPT" = 0 ]; then
  setsid sleep 1000 & echo $! > left; exit 3
fi
kill -0 $(cat left) 2>/dev/null && exit 5
exit 0
""")
    done = world.run("run", "--", program)
    assert done.returncode == 0, done.stderr
    assert not alive(int((world.folder / "left").read_text()))


def test_the_agent_outlives_the_run(world):
    assert world.run("run", "--", script(world, "exit 0\n")).returncode == 0
    status = world.json("agent", "status")
    assert status["running"] and alive(status["pid"])
    assert world.run("agent", "stop").returncode == 0
    wait_for_end(status["pid"], "the agent")
    assert world.json("agent", "status", code=5) == {"running": False,
                                                     "socket": world.env["BACKSTAY_AGENT_SOCKET"]}


def test_commands_that_need_an_agent_say_how_to_get_one(world):
    for words in (["status"], ["top"], ["checkpoint", "lj"], ["agent", "stop"]):
        done = world.run(*words)
        assert done.returncode == 5 and "backstay agent start" in done.stderr, words


def test_agent_start_twice(world):
    first = world.json("agent", "start")
    assert first["started"] and first["running"]
    assert not world.json("agent", "start")["started"]
    assert world.run("checkpoint", "nobody").returncode == 3
    status = world.json("status")
    assert status["jobs"] == [] and status["pool"]["bytes"] == 32 << 20
    line = json.loads(world.run("top", "--count", 1, "--json").stdout)
    assert "write_bytes_per_s" in line["rates"]


def test_the_socket_that_the_guide_of_slurm_names(world):
    guide = (ROOT / "docs" / "guide" / "slurm.md").read_text()
    named = re.search(r"export BACKSTAY_AGENT_SOCKET=([^`]+)`", guide)[1]
    number = {"SLURM_JOB_ID": f"test-{os.getpid()}"}
    socket = subprocess.check_output(["bash", "-c", f"printf %s {named}"],
                                     env={**os.environ, **number}, text=True)
    env = {"BACKSTAY_AGENT_SOCKET": socket}
    try:
        assert world.json("agent", "start", env=env)["socket"] == socket
        assert world.run("agent", "stop", env=env).returncode == 0
    finally:
        if socket.startswith(f"/tmp/backstay-{os.getuid()}-test-"):
            shutil.rmtree(os.path.dirname(socket), ignore_errors=True)
