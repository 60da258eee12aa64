"""A program that knows nothing of Backstay writes its own restart files under `backstay run
--capture-files`, with the real library, and is killed in the middle of a file.
"""

import re
import shutil
import sys

import pytest
from loaded import compiled
from processes import processes, wait_for_end

LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--oversubscribe"], "mpich": ["mpiexec.mpich"]}
HERE = [name for name, words in LAUNCHERS.items() if shutil.which(words[0])]
if not HERE:
    pytest.skip("no launcher is installed", allow_module_level=True)
KILLED = 4
SOLVER = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
enum { count = 100000, STEPS = 6, KILLED = 4 };
int main(void) {
  static int half[2][count];
  char name[64];
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (rank == NULL) rank = getenv("PMI_RANK");
  snprintf(name, sizeof name, "out/%s.restart", rank);
  int step = 0;
  FILE* file = fopen(name, "r");
  const size_t there = file == NULL ? 0 : fread(half, 1, sizeof half, file);
  if (there == sizeof half) step = half[0][0];
  // A rank that was killed in its first file may have left it empty.
  if (there > 0 && (step == 0 || half[1][count - 1] != step)) { puts("torn"); return 9; }
  if (file != NULL) fclose(file);
  printf("rank %s goes on from step %d\n", rank, step);
  fflush(stdout);
  while (++step <= STEPS) {
    for (int i = 0; i < count; ++i) half[0][i] = half[1][i] = step;
    file = fopen(name, "w");
    fwrite(half[0], sizeof half[0], 1, file);
    fflush(file);
    if (step == KILLED && rank[0] == '0' && atoi(getenv("BACKSTAY_ATTEMPT")) == 0) raise(SIGKILL);
    fwrite(half[1], sizeof half[1], 1, file);
    if (fclose(file) != 0) return 8;
  }
  printf("rank %s is done\n", rank);
  return 0;
}
"""


WRITER = r"""
#include <stdio.h>
int main(void) {
  static char bytes[300000];
  FILE* file = fopen("out/a.restart", "w");
  return fwrite(bytes, sizeof bytes, 1, file) != 1 || fclose(file) != 0;
}
"""


def outcome(world, launcher, *options):
    (world.folder / "out").mkdir()
    compiled(SOLVER, world.folder / "solver")
    done = world.run("run", "--retries", 1, *options, "--", *LAUNCHERS[launcher], "-n", 2,
                     "./solver")
    return done, sorted(line for line in done.stdout.splitlines() if line.startswith("rank 0"))


@pytest.mark.parametrize("launcher", HERE)
def test_a_kill_in_the_middle_of_a_file_leaves_the_old_one(world, launcher):
    done, said = outcome(world, launcher, "--capture-files", "out/*.restart")
    assert done.returncode == 0, done
    assert said == ["rank 0 goes on from step 0", f"rank 0 goes on from step {KILLED - 1}",
                    "rank 0 is done"]
    left = sorted(path.name for path in (world.folder / "out").iterdir())
    assert [name for name in left if not name.startswith(".")] == ["0.restart", "1.restart"]
    assert "restart 1 of 1" in done.stderr


def test_without_the_library_half_a_file_is_left(world):
    """What the other test would see if nothing were captured."""
    done, _ = outcome(world, HERE[0])
    assert done.returncode != 0 and "torn" in done.stdout


def test_a_pattern_that_fits_no_file_is_told(world):
    (world.folder / "out").mkdir()
    program = world.folder / "writer"
    compiled(WRITER, program)
    told = "backstay run: no file was captured: "
    good = world.run("run", "--capture-files", "out/*.restart", "--", program)
    assert good.returncode == 0 and told not in good.stderr, good.stderr
    wrong = world.run("run", "--capture-files", "out/*.restrat", "--", program)
    assert wrong.returncode == 0 and told in wrong.stderr, wrong.stderr


UNFIT = """
import fcntl, os, sys
name, how = "out/a.restart", sys.argv[1]
if how == "locked":
    with open(name, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(bytes(600_000))
elif how == "opened":
    open("out/a", "wb").write(b"x")
    os.rename("out/a", name)
    to = os.open(name, os.O_RDWR)
    os.write(to, bytes(600_000))
elif how == "below":
    open(name, "wb").write(b"x")
for number in range(4 if how == "fit" else 0):
    open(f"out/{number}.restart", "wb").write(bytes(600_000))
"""


def test_why_no_file_was_captured_is_told_and_how_many_were(world):
    """The reason that counts; each command tells of its own files."""
    (world.folder / "out").mkdir()
    told = "no file was captured; of those that fit --capture-files: 1 "
    for how, says in (("locked", told + "locked while open, as HDF5 does"),
                      ("opened", told + "opened to be changed in place"),
                      ("below", told + "below 256 KiB"),
                      ("fit", "4 files captured, 2.4 MB, all at their places"),
                      ("none", "no file was captured: none of 256 KiB")):
        done = world.run("run", "--job", "a", "--capture-files", "out/*.restart", "--",
                         sys.executable, "-c", UNFIT, how)
        assert done.returncode == 0 and f"backstay run: {says}" in done.stderr, done
        assert done.stderr.count("backstay run: ") == 1, done.stderr


def test_versions_that_cannot_be_written_are_told(world):
    """Files go to their places all the same. The pattern is not to blame."""
    program = world.folder / "writer"
    compiled(WRITER, program)
    (world.folder / "out").mkdir()
    run = ("run", "--capture-files", "out/*.restart", "--", program)
    first = world.run(*run)
    assert first.returncode == 0 and first.stderr.count("\n") == 1, first.stderr
    assert re.fullmatch(r"backstay run: \d+ files? captured, [\d.]+ MB, (all )?at (its|their) "
                        r"places?\n", first.stderr), first.stderr
    (versions,) = world.dir.glob("writer.files.*")
    for number in range(2, 9):
        (versions / f"v{number:016}").touch()
    done = world.run(*run)
    assert done.returncode == 0 and "no file was captured" not in done.stderr, done.stderr
    assert "none could be written as a version: create the folder" in done.stderr, done.stderr
    for pid, words in processes():
        if words[0].endswith(b"backstay-collector") and \
                str(world.folder).encode() in words[1]:
            wait_for_end(pid, "the collector")
    done = world.run("run", "--job", "writer", "--capture-files", "out/*.restart", "--", "true")
    assert done.returncode == 0 and "could not be brought" not in done.stderr, done.stderr
    done = world.run("agent", "stop")
    assert done.returncode == 0 and "lost" not in done.stderr, done.stderr


def test_a_job_that_cannot_be_opened_is_told(world):
    """It is not known what an earlier program has left; no file is said not to be at its place."""
    program = world.folder / "writer"
    compiled(WRITER, program)
    (world.folder / "out").mkdir()
    run = ("run", "--capture-files", "out/*.restart", "--", program)
    assert world.run(*run[:1], "--job", "other", *run[1:]).returncode == 0
    (other,) = world.dir.glob("other.files.*")
    versions = world.dir / other.name.replace("other", "writer")
    versions.touch()
    done = world.run(*run)
    assert done.returncode == 1 and "could not be brought" not in done.stderr, done.stderr
    assert f"is not known, as job {versions.name} cannot be opened: " in done.stderr, done.stderr
