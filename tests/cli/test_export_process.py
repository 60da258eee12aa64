"""`backstay export` of a process that `run --transparent` saved: a core file for a debugger, and
ranges of its memory.
"""

import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT
from transparent import first_versions, nothing_is_left, seed, start  # noqa: F401 (fixtures)

sys.path.insert(0, str(ROOT / "python"))

PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static char text[] = "these bytes are looked for";
static double table[1 << 20];  /* of which one page is not zeros */
static volatile long steps_done = 41;

static void *helper(void *nothing) {
  for (;;) usleep(1000);
  return nothing;
}

__attribute__((noinline)) static void wait_inside(const char *go) {
  while (access(go, F_OK) != 0) usleep(1000);
}

int main(int count, char **words) {
  pthread_t thread;
  pthread_create(&thread, 0, helper, 0);
  table[7] = 2.5;
  ++steps_done;
  printf("%p\n", (void *)text);
  fflush(stdout);
  wait_inside(words[count - 1]);
}
"""


@pytest.fixture
def saved(world):
    """A version of the program; returns where its text lies."""
    (world.folder / "app.c").write_text(PROGRAM)
    subprocess.run(["cc", "-g", "-O0", "-pthread", "app.c", "-o", "app"], cwd=world.folder,
                   check=True)
    running = start(world, ["./app", "one word", "go"], "--job", "app", "--interval", 0.1)
    address = int(running.stdout.readline(), 16)
    first_versions(world, running)
    (world.folder / "go").touch()
    running.communicate(timeout=60)
    assert running.returncode == 0
    return address


def debugger(world, *commands):
    words = [word for command in commands for word in ("-ex", command)]
    done = subprocess.run(
        ["gdb", "-batch", "-nx", *words, "app", "out/rank-00000.core"], cwd=world.folder,
        capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


@pytest.mark.skipif(not shutil.which("gdb"), reason="gdb is not installed")
@pytest.mark.usefixtures("saved")
def test_a_debugger_reads_the_process(world):
    done = world.json("export", "app", "-o", "out")
    core, = done["processes"]
    path = world.folder / "out" / "rank-00000.core"
    assert core == {"file": "out/rank-00000.core", "rank": 0, "bytes": path.stat().st_size}
    assert path.stat().st_blocks * 512 < 2 << 20 < core["bytes"]  # zeros take no room
    said = debugger(world, "bt", "info threads", "p steps_done", "p table[7]", "p table[1<<19]",
                    "p text", "info proc")
    assert re.search(r"in wait_inside \(go=0x\w+ \"go\"\)", said), said
    assert re.search(r"in main \(count=3, ", said), said
    assert len(re.findall(r"Thread 0x", said)) >= 2, said
    assert "$1 = 42\n$2 = 2.5\n$3 = 0\n$4 = \"these bytes are looked for\"\n" in said, said


def test_ranges_of_memory(world, saved):
    done = world.run("export", "app", "-o", "out", "--range", f"{saved + 6:x}+5",
                     "--range", f"0x{saved:x}+0x5")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (world.folder / "out").iterdir()) == [
        f"rank-00000.{saved:012x}.raw", f"rank-00000.{saved + 6:012x}.raw"]
    assert (world.folder / "out" / f"rank-00000.{saved + 6:012x}.raw").read_bytes() == b"bytes"


@pytest.mark.parametrize("word, code, why", [
    ("7f+", 2, "'7f+' is no range: an address in hexadecimal, +, a number of bytes"),
    ("7f+0", 2, "is no range"),
    ("10+4096", 3, "no area holds 4096 bytes at 10"),
    ("{text:x}+99999999999", 3, "no area holds 99999999999 bytes"),
])
def test_bad_ranges(world, saved, word, code, why):
    done = world.run("export", "app", "-o", "out", "--range", word.format(text=saved))
    assert done.returncode == code and why in done.stderr, done.stderr


@pytest.mark.usefixtures("saved")
def test_what_is_there_is_not_replaced_without_force(world):
    assert world.run("export", "app").returncode == 0
    again = world.run("export", "app")
    assert again.returncode == 1 and "exists already; --force replaces it" in again.stderr
    assert world.run("export", "app", "--force").returncode == 0


def test_a_range_of_a_version_without_a_process(world):
    world.golden()
    done = world.run("export", "golden", "--range", "1000+10")
    assert done.returncode == 3 and "holds no process" in done.stderr, done.stderr


@pytest.mark.usefixtures("saved")
def test_from_python(world):
    import backstay
    from backstay.format import NotFoundError

    version = backstay.open(world.dir / "app")
    assert list(version) == [] and version.images_here() == [0] and version.verify() > 0
    image = version.image(0)
    assert image.text(image.identity["program"]).endswith("app") and len(image.threads) == 2
    with pytest.raises(NotFoundError, match="saved its whole process, which has no regions"):
        version.rank(0)
    with pytest.raises(NotFoundError, match="has no rank 1"):
        version.image(1)
    world.golden()
    with pytest.raises(NotFoundError, match="saved regions, not its whole process"):
        backstay.open(world.dir / "golden").image(0)
