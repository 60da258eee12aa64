"""`backstay exec`: what the program becomes, what is refused, and where the library is loaded."""

import json
import os
import shutil
import signal
import subprocess

import pytest
from loaded import SHOW, Installation, compiled, shown

GLOB = "out/*.restart"


@pytest.fixture
def installed(world):
    return Installation(world)


def captured(installed, *words, **more):
    return installed.run("exec", "--capture-files", GLOB, "--", *words, **more)


def test_becomes_the_program(installed):
    running = subprocess.Popen(
        installed.command("exec", "--capture-files", GLOB, "--", "./show", "a"), env=installed.env,
        cwd=installed.world.folder, stdout=subprocess.PIPE, text=True)
    (said,) = shown(running.communicate(timeout=60)[0])
    assert running.returncode == 0
    assert said["argv0"] == "./show" and said["name"] == "show" and said["pid"] == str(running.pid)
    assert said["job"] == said["default"] == said["program"] == "show"
    assert said["preload"] == str(installed.library)
    assert said["dir"] == str(installed.world.dir)
    assert installed.loaded() == [(str(installed.show), str(running.pid),
                                   f"{installed.world.folder}/{GLOB}")]


def test_a_program_of_path_keeps_the_name_that_it_was_called_by(installed):
    env = {"PATH": f"/nowhere:{installed.world.folder}:{os.environ['PATH']}"}
    (said,) = shown(captured(installed, "show", env=env).stdout)
    assert said["argv0"] == "show" and said["name"] == "show"


def test_the_users_own_library_stays_and_ours_comes_once(installed):
    inner = installed.command("exec", "--capture-files", "x*", "--", installed.show)
    done = captured(installed, *inner, env={"LD_PRELOAD": str(installed.own)})
    (said,) = shown(done.stdout)
    assert said["preload"] == f"{installed.own}:{installed.library}", done.stderr
    assert installed.loaded()[-1][0] == installed.loaded("owns")[-1][0] == str(installed.show)
    assert installed.loaded()[-1][2] == f"{installed.world.folder}/x*"


def test_several_patterns_and_settings(installed):
    done = installed.run("exec", "--capture-files", "a*", "--capture-files=/data/b?",
                         "--job", "mine", "--", installed.show)
    (said,) = shown(done.stdout)
    assert said["job"] == "mine" and said["default"] == ""
    assert installed.loaded()[0][2] == f"{installed.world.folder}/a*;/data/b?"


def test_without_patterns_it_sets_the_job_up_only(installed):
    (said,) = shown(installed.run("exec", "--", installed.show,
                                  env={"LD_PRELOAD": str(installed.own)}).stdout)
    assert said["job"] == "show" and said["preload"] == str(installed.own)
    assert installed.loaded() == []
    assert said["socket"] == installed.env["BACKSTAY_AGENT_SOCKET"]


def test_the_name_of_a_job_that_run_has_given_stays(installed):
    env = {"BACKSTAY_LAUNCH": "0000000a", "BACKSTAY_JOB": "other", "BACKSTAY_PROGRAM": "prog"}
    (said,) = shown(captured(installed, installed.show, env=env).stdout)
    assert (said["job"], said["program"], said["default"]) == ("other", "prog", "")


def test_children_are_captured_and_those_with_another_environment_are_not(installed):
    captured(installed, installed.show, "spawn", installed.show)
    assert len(installed.loaded()) == 2
    captured(installed, installed.show, "spawn", "env", "-i", installed.show)
    assert [one[0] for one in installed.loaded()][2:] == [str(installed.show),
                                                          shutil.which("env")]


@pytest.mark.parametrize("number", [0, 1, 7, 126])
def test_the_exit_code_is_the_programs(installed, number):
    assert captured(installed, installed.show, "exit", number).returncode == number


def test_signals_reach_the_program_and_end_it(installed):
    assert captured(installed, installed.show, "signal", 9).returncode == -9
    running = subprocess.Popen(
        installed.command("exec", "--capture-files", GLOB, "--", installed.show, "wait"),
        env=installed.env, cwd=installed.world.folder, stdout=subprocess.PIPE, text=True)
    running.stdout.readline()
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=60)
    assert running.returncode == signal.SIGTERM + 1


# --- refused ------------------------------------------------------------------------------------

def refused(installed, code, *parts, words, options=("--capture-files", GLOB)):
    done = installed.run("exec", *options, "--", *words)
    assert done.returncode == code and done.stdout == "", done
    assert done.stderr.startswith("backstay: ") and done.stderr.count("\n") == 1, done.stderr
    for part in parts:
        assert part in done.stderr, done.stderr
    as_json = installed.run("exec", "--json", *options, "--", *words)
    assert as_json.returncode == code
    assert json.loads(as_json.stdout)["error"]["message"] == done.stderr[len("backstay: "):-1]
    assert installed.loaded() == []


def test_a_program_that_is_missing_or_is_none(installed):
    folder = installed.world.folder
    (folder / "plain").write_text("x")
    for options in ((), ("--capture-files", GLOB)):
        refused(installed, 127, "no-such-program was not found", "PATH",
                words=["no-such-program"], options=("--job", "j", *options))
        refused(installed, 127, "/no/such was not found", words=["/no/such"], options=options)
        refused(installed, 126, "chmod +x", words=["./plain"], options=options)
        refused(installed, 126, "is a folder", words=["./"], options=options)


def test_a_static_program_is_named(installed):
    compiled(SHOW, installed.world.folder / "fixed", "-static")
    refused(installed, 126, "./fixed cannot be captured: it is linked statically",
            "Link it dynamically", words=["./fixed"])
    refused(installed, 126, "fixed cannot be captured", words=["env", "A=b", "./fixed"])
    assert shown(installed.run("exec", "--", "./fixed").stdout)[0]["job"] == "fixed"


def test_a_set_user_id_program_is_named(installed):
    if os.getuid() != 0:
        pytest.skip("needs root to give a file away")
    other = shutil.copy2(installed.show, installed.world.folder / "other")
    for change, mode, what in (((65534, 0), 0o4755, "set-user-id"),
                               ((0, 65534), 0o2755, "set-group-id")):
        os.chown(other, *change)
        os.chmod(other, mode)
        refused(installed, 126, what, "Run a copy without these rights", words=[other])
        assert installed.run("exec", "--", other).returncode == 0


def test_scripts(installed):
    script = installed.world.folder / "script"
    script.write_text(f"#!/bin/sh\n{installed.show}\n")
    script.chmod(0o755)
    (said,) = shown(captured(installed, "./script").stdout)
    assert said["job"] == "script" and len(installed.loaded()) == 2
    (installed.world.folder / "loaded").unlink()
    script.write_text("#!/no/such/shell\n")
    refused(installed, 126, "is a script for /no/such/shell, which is missing", words=["./script"])
    refused(installed, 126, "/no/such/shell", words=["./script"], options=())
    compiled(SHOW, installed.world.folder / "fixed", "-static")
    script.write_text(f"#!{installed.world.folder}/fixed\n")
    refused(installed, 126, "is a script", "linked statically", words=["./script"])
    script.write_text(f"{installed.show}\n")  # no "#!": a shell's, as execvp has it
    assert len(shown(captured(installed, "./script").stdout)) == 1


@pytest.mark.parametrize("glob", ["*", "/", "/usr/lib/*", "*.so", "/proc/*", "/sys/x", "/dev/null",
                                  "lib*", ""])
def test_patterns_that_take_in_too_much(installed, glob):
    refused(installed, 2, f"--capture-files '{glob}' ", "for example '*.restart'",
            words=["./show"], options=("--capture-files", glob))


def test_other_wrong_usage(installed):
    refused(installed, 2, "backstay run --capture-files GLOB -- mpirun", words=["mpirun", "./show"])
    refused(installed, 2, "give the job a name: backstay exec --job NAME",
            words=["sh", "-c", "exit"])
    assert installed.run("exec", "--capture-files").returncode == 2


def test_a_library_that_is_missing_or_lies_where_it_cannot_be_loaded_from(installed):
    moved = installed.world.folder / "in stalled"
    installed.library.rename(installed.bin / "away")
    refused(installed, 1, "libbackstay_files.so, the library that captures files, is missing",
            str(installed.bin), "make build", words=["./show"])
    (installed.bin / "away").rename(installed.library)
    installed.bin.parent.rename(moved)
    installed.backstay = moved / "bin" / "backstay"
    refused(installed, 1, "LD_PRELOAD takes no path with blanks", words=["./show"])
