"""`backstay run --transparent` as shells use it: scripts, programs that become others, pipes.

BACKSTAY_SEED repeats a run; BACKSTAY_LIVES sets how often a test ends each program.
"""

import os
import re
import shutil
import signal
import subprocess

import pytest
from conftest import PROGRAM
from processes import wait_for
from transparent import (  # noqa: F401 (two are fixtures)
    PYTHON,
    STARTED,
    STEPS,
    WAITS,
    first_versions,
    go_on,
    newest,
    nothing_is_left,
    processes_of,
    program,
    script,
    seed,
    start,
    stop,
    versions,
)


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


def test_a_program_behind_timeout_is_told_where_that_belongs(world):
    text = "#!/bin/sh\necho begun\nwhile [ ! -e on ]; do :; done\n"
    running = start(world, ["timeout", 60, script(world, text)], "--job", "app", "--interval", 3600)
    assert running.stdout.readline() == "begun\n"
    running.send_signal(signal.SIGUSR1)
    assert "asked the program" in running.stderr.readline()
    first = running.stderr.readline()
    wanted = r"its child \d+ \([^)]+\) runs: put timeout before `backstay run`"
    assert re.search(wanted, first), first
    (world.folder / "on").touch()
    _, told = running.communicate(timeout=60)
    assert running.returncode == 0, told


def test_a_program_with_a_child_is_saved_when_that_has_ended(world):
    """A shell that waits for a command; it is asked once, and the child is named."""
    text = ("#!/bin/sh\necho begun\n/bin/sh -c 'while [ ! -e on ]; do sleep 0.01; done'\n"
            "echo alone\nwhile [ ! -e go ]; do :; done\necho gone on\n")
    running = start(world, [script(world, text)], "--job", "app", "--interval", 3600)
    assert running.stdout.readline() == "begun\n"
    running.send_signal(signal.SIGUSR1)
    assert "asked the program" in running.stderr.readline()
    first = running.stderr.readline()
    assert re.search(r"cannot be saved now, because its child \d+ \(sh\) runs", first), first
    (world.folder / "on").touch()
    wait_for(lambda: versions(world, "app"), "the version of the shell alone")
    os.kill(processes_of(world)[0], signal.SIGKILL)
    (world.folder / "go").touch()
    out, told = running.communicate(timeout=60)
    assert (running.returncode, out) == (0, "alone\ngone on\n"), told
    assert "cannot be saved" not in told and "from version 1" in told, told


def test_a_script_of_several_programs_goes_on(world):
    """Saved between them: each line is printed once, whatever is killed."""
    text = ("#!/bin/sh\ni=0\nwhile [ $i -lt 60 ]; do\n  i=$((i+1))\n  /bin/echo $i\n"
            "  j=0; while [ $j -lt 8000 ]; do j=$((j+1)); done\ndone\n")
    assert "from version" in go_on(world, [script(world, text)])


def test_between_two_pipes(world):
    """What went through before the kill is not repeated, and what comes after it is not lost."""
    text = ("import sys\nfor line in sys.stdin:\n    print('got', line.strip(), flush=True)\n"
            "print('end', flush=True)\n")
    running = subprocess.Popen(
        [PROGRAM, "run", "--transparent", "--job", "app", "--interval", "0.1", "--",
         *map(str, program(world, text))],
        env=world.env, cwd=world.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)
    STARTED.append(running)
    running.stdin.write("one\n")
    running.stdin.flush()
    assert running.stdout.readline() == "got one\n"
    seen = newest(world)
    wait_for(lambda: newest(world) > seen + 1, "a version behind the first line")
    killed = processes_of(world)[0]
    os.kill(killed, signal.SIGKILL)
    # A reader that is woken by the kill may still take what is there by then.
    wait_for(lambda: not os.path.exists(f"/proc/{killed}"), "the end of the killed program")
    running.stdin.write("two\n")
    running.stdin.flush()
    assert running.stdout.readline() == "got two\n"
    out, told = running.communicate(timeout=60)
    assert (running.returncode, out) == (0, "end\n"), told
    assert "does not come again" in told, told


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


ORIGIN = """
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int first(void);
int main(void) {
  printf("%d\\n", first());
  fflush(stdout);
  while (access("go", F_OK) != 0) usleep(10000);
  void* later = dlopen("libsecond.so", RTLD_NOW);
  int (*second)(void) = later == NULL ? NULL : (int (*)(void))dlsym(later, "second");
  printf("%d\\n", second == NULL ? -1 : second());
  return 0;
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no compiler")
def test_libraries_beside_the_program_are_found(world):
    """By $ORIGIN, at its start and after a restart."""
    folder = world.folder / "place"
    (folder / "lib").mkdir(parents=True)
    for name, number in (("first", 42), ("second", 43)):
        (folder / f"{name}.c").write_text(f"int {name}(void) {{ return {number}; }}")
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", f"lib/lib{name}.so", f"{name}.c"],
                       cwd=folder, check=True)
    (folder / "main.c").write_text(ORIGIN)
    subprocess.run(["gcc", "-o", "main", "main.c", "-Llib", "-lfirst", "-Wl,-rpath,$ORIGIN/lib"],
                   cwd=folder, check=True)
    out = world.folder / "out"
    with open(out, "wb") as file:
        running = start(world, ["place/main"], "--job", "app", "--interval", 0.2, out=file)
        first_versions(world, running)
        for pid in processes_of(world):
            os.kill(pid, signal.SIGKILL)
        (world.folder / "go").touch()
        _, told = running.communicate(timeout=60)
    assert running.returncode == 0 and out.read_text() == "42\n43\n", told
    assert "from version" in told
