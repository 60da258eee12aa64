"""Programs without MPI behind a launcher, saved together by `backstay run --transparent`."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

from processes import wait_for
from transparent import PYTHON, once, processes_of, start

# Counts into a file of its own, which holds a checksum of all that it has done.
COUNTER = """
import hashlib, os, sys, time
rank = next(os.environ[name] for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
            if name in os.environ)
ranks = next(os.environ[name] for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
             if name in os.environ)
done = hashlib.sha256()
with open(f"out.{rank}", "w") as out:
    for step in range(int(sys.argv[1])):
        for i in range(300):
            done.update(b"%s %d %d" % (rank.encode(), step, i))
        print(step, done.hexdigest(), file=out, flush=True)
        time.sleep(0.005)
        if step == 20 and rank in sys.argv[2:]:
            break
    print("end of", rank, "of", ranks, file=out)
"""
LINES_LOST = 3  # at most, in a launcher that is killed or dies
LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--oversubscribe"], "mpich": ["mpiexec.mpich"]}
HERE = [name for name, words in LAUNCHERS.items() if shutil.which(words[0])]


def line(launcher, ranks, *words):
    return [*LAUNCHERS[launcher], "-n", ranks, *words]


def counter(world, steps, *early):
    """The words that start it; the ranks in `early` end sooner than the others."""
    path = world.folder / "app.py"
    path.write_text(COUNTER)
    return [PYTHON, path, steps, *early]


def outputs(world):
    return {one.name: one.read_text() for one in sorted(world.folder.glob("out.*"))}


def undisturbed(world, launcher, ranks, words):
    """What each rank writes without us."""
    words = list(map(str, line(launcher, ranks, *words)))

    def run():
        subprocess.run(words, cwd=world.folder, check=True, env=world.env,
                       stdin=subprocess.DEVNULL, timeout=100)
        found = outputs(world)
        for name in found:
            (world.folder / name).unlink()
        assert len(found) == ranks
        return found

    return once(words, world.folder, run)


def printed_undisturbed(world, words):
    def run():
        done = subprocess.run(words, env=world.env, cwd=world.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return once(words, world.folder, run)


def begin(world, launcher, ranks, words, *options, **more):
    return start(world, line(launcher, ranks, *words), "--job", "app", *options, **more)


def newest(world):
    """The newest version of which all ranks are on the disk."""
    import json
    done = world.run("ls", "app", "--json")
    found = json.loads(done.stdout).get("versions", []) if done.returncode == 0 else []
    return max((one["version"] for one in found if one["level"] != "none"), default=0)


def is_saved(world, running, above=0):
    """Waits for a version newer than `above`, or for the program's end. False: it has ended."""
    wait_for(lambda: running.poll() is not None or newest(world) > above, "a version")
    return running.poll() is None


def wait_for_version(world, running, above=0):
    assert is_saved(world, running, above), running.communicate()


def goes_on_from_a_cut(world, words, lines, victim="backstay-boot"):
    """One rank is killed behind a version; `lines` lines come as of an undisturbed run."""
    words = list(map(str, words))
    expected = printed_undisturbed(world, words)
    assert len(expected) == lines, expected
    with open(world.folder / "out", "w") as out:
        running = start(world, words, "--job", "app", "--interval", 0.1, "--retries", 9, out=out)
        wait_for_version(world, running)
        os.kill(processes_of(world, victim)[-1], signal.SIGKILL)
        _, told = running.communicate(timeout=200)
    assert running.returncode == 0, told
    assert re.search(r"restart 1 of \d+ from version", told), told
    expect_printed(world, expected, told)


def expect_printed(world, expected, told):
    """A rank prints again what it printed behind the version. Its last line may be cut short, and
    the first one of the restart then stands behind that. What the launcher had not passed on when
    it ended is lost, also of the lines before the version: the last ones there.
    """
    printed = (world.folder / "out").read_text().splitlines()
    missing = [one for one in expected if not any(line.endswith(one) for line in printed)]
    places = [expected.index(one) for one in missing]
    in_a_row = not places or places[-1] - places[0] < LINES_LOST
    assert in_a_row and printed[-1] == expected[-1], (missing, told)


def files_of(pid):
    return os.readlink(Path(f"/proc/{pid}/exe"))
