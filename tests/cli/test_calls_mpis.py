"""Programs that call Backstay, in C and in Python, over MPIs that a user has beside the system's
own: one library of ours serves all releases of an ABI.
"""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import PROGRAM
from mpis import NAMES, SOURCES, Mpi
from ranks import newest
from processes import wait_for
from transparent import processes_of

BUILD = Path(PROGRAM).resolve().parents[2]
SIZE = [4000, 64, 64]  # steps, rows, columns


def heat_in_c(mpi):
    ours = "openmpi" if mpi.name.startswith("openmpi") else "mpich"
    folders = [BUILD / "src/capture/mpi", BUILD / "src/client"]
    if not (folders[0] / f"libbackstay_{ours}.so").exists():
        pytest.skip(f"libbackstay_{ours} was not built")
    searched = [word for folder in folders for word in (f"-L{folder}", f"-Wl,-rpath,{folder}")]
    return [mpi.built("../examples/heat/heat.c", f"-I{SOURCES.parent}/include", *searched,
                      f"-lbackstay_{ours}", "-lbackstay", "-lm")]


def heat_in_python(mpi):
    return [*mpi.python(), SOURCES.parent / "examples/heat/heat.py"]


@pytest.mark.parametrize("make", [heat_in_c, heat_in_python])
@pytest.mark.parametrize("name", NAMES)
def test_it_is_killed_and_comes_back(world, name, make):
    mpi = Mpi(name, world)
    words = list(map(str, mpi.line(2, *make(mpi), *SIZE)))
    world.env.update(BACKSTAY_JOB="plain", BACKSTAY_CHECKPOINT_POLICY="request")
    plain = subprocess.run(words, env=world.env, cwd=world.folder, capture_output=True, text=True,
                           stdin=subprocess.DEVNULL, timeout=100)
    result = re.search(r"^done step .*$", plain.stdout, re.M)
    assert result, plain.stderr
    world.env.update(BACKSTAY_CHECKPOINT_POLICY="calls", BACKSTAY_CHECKPOINT_EVERY_CALLS="100")
    running = world.popen("run", "--job", "app", "--", *words)
    wait_for(lambda: running.poll() is not None or newest(world) > 0, "a version")
    program = "heat" if make == heat_in_c else Path(os.path.realpath(words[3])).name
    os.kill(processes_of(world, program)[-1], signal.SIGKILL)
    out, told = running.communicate(timeout=100)
    assert running.returncode == 0 and "restart 1 of 3 from version" in told, told
    assert result[0] in out and "restart version" in out, out
