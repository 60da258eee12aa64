"""`backstay run --capture-files` behind real launchers: the library is in each rank and in no
process of the launcher.
"""

import json
import os
import shutil

import pytest
from loaded import Installation, shown

GLOB = "out/*.restart"
LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--oversubscribe"], "mpich": ["mpiexec.mpich"]}
HERE = [name for name, words in LAUNCHERS.items() if shutil.which(words[0])]
if not HERE:
    pytest.skip("no launcher is installed", allow_module_level=True)
launchers = pytest.mark.parametrize("launcher", HERE)


@pytest.fixture
def installed(world):
    return Installation(world)


def run(installed, *words, env=None, options=()):
    return installed.run("run", "--capture-files", GLOB, *options, "--", *words, env=env)


def programs(installed, log="loaded"):
    return sorted(one[0] for one in installed.loaded(log))


@launchers
def test_each_rank_and_no_process_of_the_launcher(installed, launcher):
    done = run(installed, *LAUNCHERS[launcher], "-n", 3, "./show", "a", "exit")
    assert done.returncode == 0, done.stderr
    ranks = shown(done.stdout)
    assert len(ranks) == 3
    assert {one["argv0"] for one in ranks} == {"./show"}
    assert {one["job"] for one in ranks} == {one["program"] for one in ranks} == {"show"}
    assert {one["preload"] for one in ranks} == {str(installed.library)}
    assert programs(installed) == [str(installed.show)] * 3, done.stderr
    assert {one[1] for one in installed.loaded()} == {one["pid"] for one in ranks}
    assert {one[2] for one in installed.loaded()} == {f"{installed.world.folder}/{GLOB}"}


@launchers
def test_the_users_own_library_stays(installed, launcher):
    done = run(installed, *LAUNCHERS[launcher], "-n", 2, installed.show,
               env={"LD_PRELOAD": str(installed.own)})
    both = f"{installed.own}:{installed.library}"
    assert {one["preload"] for one in shown(done.stdout)} == {both}
    assert programs(installed) == [str(installed.show)] * 2
    everywhere = {os.path.basename(one) for one in programs(installed, "owns")}
    assert "show" in everywhere and len(everywhere) > 1, "that is what the user has asked for"


@launchers
def test_several_programs(installed, launcher):
    other = shutil.copy2(installed.show, installed.world.folder / "other")
    done = run(installed, *LAUNCHERS[launcher], "-n", 1, "./show", "a", ":", "-n", 2, "env", "A=b",
               "./other", "c")
    assert done.returncode == 0, done.stderr
    assert sorted(one["argv0"] for one in shown(done.stdout)) == ["./other", "./other", "./show"]
    # env is of the rank, and becomes its program.
    assert sorted(set(programs(installed))) == sorted({str(other), str(installed.show),
                                                       os.path.realpath(shutil.which("env"))})


@launchers
def test_a_program_in_the_launchers_folder(installed, launcher):
    """Its path begins there; Open MPI finds it by its name alone, too."""
    there = installed.world.folder / "there"
    there.mkdir()
    installed.show.rename(there / "other")
    for name in ("./other", "other")[:1 + (launcher == "openmpi")]:
        done = run(installed, *LAUNCHERS[launcher], "-wdir", there, "-n", 1, name)
        assert done.returncode == 0 and shown(done.stdout)[0]["job"] == "other", done
        done = installed.run("run", "--", *LAUNCHERS[launcher], "-wdir", there, "-n", 1, name)
        assert done.returncode == 0 and shown(done.stdout)[0]["job"] == "other", done
    assert programs(installed) == [str(there / "other")] * (1 + (launcher == "openmpi"))


@launchers
def test_exit_codes_and_signals_pass_and_the_job_is_started_again(installed, launcher):
    words = LAUNCHERS[launcher]
    done = run(installed, *words, "-n", 1, "./show", "exit", 7, options=("--retries", 1))
    assert done.returncode == 7 and "restart 1 of 1" in done.stderr, done.stderr
    assert len(installed.loaded()) == 2
    done = run(installed, *words, "-n", 2, "./show", "signal", 11, options=("--retries", 0))
    assert done.returncode in (139, 11), done


@launchers
def test_patterns_with_blanks_and_signs_arrive_whole(installed, launcher):
    glob = "it's a $HOME; \"dir\"/*.r[0-9]"
    done = installed.run("run", "--capture-files", glob, "--job", "a-b", "--",
                         *LAUNCHERS[launcher], "-n", 1, "./show")
    assert done.returncode == 0, done.stderr
    assert [one[2] for one in installed.loaded()] == [f"{installed.world.folder}/{glob}"]
    assert [one["job"] for one in shown(done.stdout)] == ["a-b"]


def test_no_launcher(installed):
    done = run(installed, "./show", "exit", 3, options=("--retries", 0))
    assert done.returncode == 3
    (said,) = shown(done.stdout)
    assert said["job"] == "show" and said["argv0"] == "./show" and len(installed.loaded()) == 1


def test_what_cannot_be_captured_is_said_before_the_start(installed):
    static = installed.world.folder / "fixed"
    shutil.copy2(installed.show, static)
    data = static.read_bytes()
    static.write_bytes(data.replace(b"/ld-linux", b"/ld-other"))
    words = LAUNCHERS[HERE[0]]
    for code, part, command in (
            (126, "./fixed cannot be captured", [*words, "-n", 1, "./fixed"]),
            (126, "./fixed cannot be captured", [*words, "-n", 1, "./show", ":", "./fixed"]),
            (126, "./fixed cannot be captured", ["./fixed"]),
            (127, "was not found", ["--job", "j", "--", "/no/such"]),
            (2, "by hand", ["--job", "j", "--", *words, "-n", 1, "./nowhere"]),
            (2, "aprun is no launcher", ["--job", "j", "--", "aprun", "-n", 1, "./show"])):
        done = installed.run("run", "--capture-files", GLOB,
                             *(command if "--" in command else ["--", *command]))
        assert done.returncode == code and part in done.stderr, done
        assert "failed (exit code" not in done.stderr and shown(done.stdout) == []
    done = installed.run("run", "--capture-files", "*", "--", "./show")
    assert done.returncode == 2 and "every file of the working directory" in done.stderr


@pytest.mark.skipif("openmpi" not in HERE, reason="Open MPI is missing")
def test_an_app_file_is_refused_by_name(installed):
    (installed.world.folder / "plan").write_text("-n 1 ./show\n")
    done = installed.run("run", "--job", "j", "--capture-files", GLOB, "--", "mpirun.openmpi",
                         "--app", "plan")
    assert done.returncode == 2 and "has its programs in the file plan" in done.stderr
    assert f"{installed.backstay} exec --capture-files={GLOB}" in done.stderr


def test_the_job_keeps_the_programs_name(installed):
    done = run(installed, *LAUNCHERS[HERE[0]], "-n", 1, "./show", options=("--json",))
    events = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert {one["job"] for one in events} == {"show"}, done.stderr


@pytest.mark.skipif("openmpi" not in HERE, reason="Open MPI is missing")
def test_every_host_needs_backstay_at_the_same_path(installed):
    """The remote shell runs all here, and on one host there is no Backstay."""
    shell = installed.world.folder / "rsh"
    shell.write_text("""#!/bin/sh
host=$1; shift
case "$host $*" in bare*/backstay*exec*) exit 127;; esac
exec sh -c "$*"
""")
    shell.chmod(0o755)
    words = ["--job", "j", "--remote-shell", shell, "--", "mpirun.openmpi", "-n", 2, "./show"]
    for hosts, without in (("fit,bare", True), ("fit", False)):
        line = [*words[:6], "--host", hosts, *words[6:]]
        done = installed.run("run", "--capture-files", GLOB, "--retries", 0, *line)
        said = f"`{installed.backstay} exec` does not work on bare: install the same Backstay"
        assert (said in done.stderr) == without, done.stderr
        assert (done.returncode == 1) >= without and shown(done.stdout) == []
        assert ("true" in {os.path.basename(one) for one in programs(installed)})
