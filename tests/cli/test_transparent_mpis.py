"""Unmodified programs over MPIs that a user has beside the system's own (scripts/mpis.txt): built
by that MPI's compiler, started by its launcher, killed, and back.
"""

import shutil
import signal
import subprocess

import pytest
from between import begin_it, goes_on_between_two_calls
from killed import kill_and_compare
from mpis import MPIS, NAMES, SOURCES, STANDARD, Mpi
from ranks import (
    HERE, expect_printed, goes_on_from_a_cut, line, newest, printed_undisturbed, wait_for_version)
from transparent import PYTHON, nothing_is_left, seed, start  # noqa: F401 (some are fixtures)

STEPS = 300
PAUSE_MS = 20
@pytest.fixture(params=[*NAMES, STANDARD])
def mpi(request, world):
    return Mpi(request.param, world)


def test_it_is_killed_and_goes_on_from_a_cut(world, mpi):
    """Messages of all kinds, collective calls, derived datatypes: what it prints is what an
    undisturbed run prints."""
    words = mpi.line(2, mpi.built("lower_half/halo.c"), STEPS, PAUSE_MS)
    goes_on_from_a_cut(world, words, STEPS)


@pytest.mark.parametrize("scenario", ["matched", "cancelled", "failed", "handled"])
def test_a_restart_goes_on_between_two_calls(world, mpi, scenario):
    if scenario == "handled" and mpi.name.startswith("mpich"):
        pytest.skip("MPICH 4.3 and later return no error behind a handler of the program")
    program = mpi.built("capture_cut/between.c")
    goes_on_between_two_calls(world, mpi.line(2, program, scenario))


@pytest.mark.parametrize("name, kernel, steps", [
    ("openmpi-5.0", "multigrid", 150), ("mpich-5.0", "wavefront", 300), ("intel", "wavefront", 300),
    ("openmpi-4.1", "wavefront", 300), ("mpich-4.3", "multigrid", 150),
    (STANDARD, "wavefront", 300)])
def test_a_kernel_writes_what_an_undisturbed_one_writes(world, name, kernel, steps):
    mpi = Mpi(name, world)
    words = mpi.line(2, mpi.built(f"real_programs/{kernel}.c"), "sums", steps)
    kill_and_compare(world, words, (world.folder / "sums").read_text, grows=-1)


@pytest.mark.parametrize("first, then", [
    ("openmpi-4.1", "openmpi-5.0"), ("openmpi-5.0", "openmpi-4.1"), ("openmpi-5.0", "mpich-5.0"),
    ("openmpi-4.1", "mpich-4.3"), ("mpich-5.0", "openmpi-5.0"), ("mpich-4.3", "mpich-5.0"),
    ("mpich-5.0", "intel"), ("intel", "openmpi-5.0"), (STANDARD, "intel")])
def test_it_goes_on_under_another_mpi(world, first, then):
    mpi = Mpi(first, world)
    program = mpi.built("lower_half/halo.c")
    expected = printed_undisturbed(world, list(map(str, mpi.line(2, program, STEPS, PAUSE_MS))))
    with open(world.folder / "out", "w") as out:
        running = begin_it(world, mpi.line(2, program, STEPS, PAUSE_MS), out)
        wait_for_version(world, running)
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=100)
        running = begin_it(world, Mpi(then, world).line(2, program, STEPS, PAUSE_MS), out)
        _, told = running.communicate(timeout=200)
    assert running.returncode == 0 and "goes on from version" in told, told
    expect_printed(world, expected, told)


@pytest.mark.parametrize("name", ["mpich-5.0", "mpich-4.3", STANDARD])
def test_functions_with_counts_of_64_bits(world, name):
    mpi = Mpi(name, world)
    goes_on_from_a_cut(world, mpi.line(2, mpi.built("lower_half/large_counts.c"), STEPS, PAUSE_MS),
                       STEPS)


def test_the_launchers_library_that_cannot_be_opened(world):
    """The program goes on with its own one, and so does the restart after that."""
    mpi, broken = Mpi("mpich-4.3", world), world.folder / "broken"
    program = mpi.built("lower_half/halo.c")
    words = list(map(str, mpi.line(2, program, STEPS, PAUSE_MS)))
    expected = printed_undisturbed(world, words)
    shutil.copytree(MPIS / "mpich-5.0/bin", broken / "bin", symlinks=True)
    (broken / "lib").mkdir()
    (broken / "lib/libmpi.so.12").write_text("no library")
    tellings = []
    with open(world.folder / "out", "w") as out:
        for _ in range(3):
            running = begin_it(world, words, out)
            wait_for_version(world, running, newest(world))
            running.send_signal(signal.SIGTERM)
            tellings.append(running.communicate(timeout=100)[1])
            words[0] = str(broken / "bin/mpirun")
        running = begin_it(world, words, out)
        tellings.append(running.communicate(timeout=200)[1])
    assert running.returncode == 0, tellings
    assert [told.count("the launcher's cannot be opened") for told in tellings] == [0, 1, 0, 0]
    expect_printed(world, expected, tellings)


@pytest.mark.skipif(not shutil.which("gfortran"), reason="no gfortran")
def test_fortran_of_intel_mpi(world):
    """Its library of Fortran takes more of MPI's than MPICH's does."""
    mpi = Mpi("intel", world)
    program, prefix = world.folder / "steps", mpi.bin.parent
    subprocess.run(
        ["gfortran", "-O1", "-ffree-line-length-none", "-fallow-argument-mismatch", "-w",
         "-DWITH_MPIFH", "-DWITH_MPICH", "-DWITH_INTEL", "-J", world.folder, f"-I{prefix}/include",
         "world.F90", "steps.F90", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-lmpifort",
         "-lmpi", "-o", program], check=True, cwd=SOURCES / "fortran_mpi", timeout=100)
    goes_on_from_a_cut(world, mpi.line(2, program, 60, 30), 60)


MPI4PY = """
import sys, time
import numpy
from mpi4py import MPI
comm = MPI.COMM_WORLD
mine, theirs = numpy.full(1000, comm.rank + 1.0), numpy.empty(1000)
largest = MPI.Op.Create(lambda a, b, _: numpy.maximum(a, b, out=numpy.frombuffer(b)), True)
for step in range(int(sys.argv[1])):
    comm.Sendrecv(mine, (comm.rank + 1) % comm.size, 0, theirs, (comm.rank - 1) % comm.size, 0)
    mine = 0.5 * (mine + theirs) + comm.allreduce(step) * 1e-3 + comm.bcast(comm.rank)
    if comm.rank == 0:
        print(step, repr(float(mine.sum())), flush=True)
    time.sleep(0.02)
"""


@pytest.mark.parametrize("name", ["openmpi-5.0", "mpich-5.0", "intel"])
def test_mpi4py_opens_the_library_when_it_runs(world, name):
    """It looks for functions that the library may lack, and uses those that are there."""
    mpi = Mpi(name, world)
    (world.folder / "app.py").write_text(MPI4PY)
    goes_on_from_a_cut(world, mpi.line(2, *mpi.python(), "app.py", 200), 200)


@pytest.mark.parametrize("name", NAMES)
def test_doctor_names_each_with_its_version(world, name):
    """Also one whose launcher stands beside a library that is none."""
    mpi = Mpi(name, world)
    odd = world.folder / "odd"
    for file, text in (("bin/mpirun", "#!/bin/sh"), ("lib/libmpi.so.40", "no library")):
        (odd / file).parent.mkdir(parents=True)
        (odd / file).write_text(text)
        (odd / file).chmod(0o755)
    report = world.json("doctor", "--quick", env={"PATH": f"{odd}/bin:{world.env['PATH']}"})
    found = [one["found"] for one in report["checks"] if one["check"] == "MPI"]
    assert found[0].startswith(f"{odd}/lib/libmpi.so.40 does not tell its version"), found
    assert f"{MPIS / name}/lib/libmpi.so" in found[1] and "are saved" in found[1], found
    kind, _, release = name.partition("-")
    version = found[1].split(", ")[0].lower().replace(" ", "")
    assert kind in version and (release or "2021") in version, found


UNKNOWN = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int PMPI_Init(int*, char***);
int main(int count, char** words) {
  for (int step = 0; step < 60 && PMPI_Init(&count, &words) == 0; ++step) usleep(50000);
  puts("done");
}
"""
SHARES = """
import mmap, time
with open("shared", "r+b") as file:
    memory = mmap.mmap(file.fileno(), 4096)
for step in range(100):
    memory[0] = step
    time.sleep(0.05)
print("done")
"""


def unknown_mpi(folder):
    """A program linked with a library that defines PMPI_Init and has an unknown name."""
    library, source = folder / "libother.so", folder / "app.c"
    source.write_text(UNKNOWN)
    subprocess.run(["cc", "-shared", "-x", "c", "-", "-o", library], check=True, timeout=60,
                   input=b"int PMPI_Init(int* count, char*** words) { return 0; }")
    subprocess.run(["cc", source, "-o", folder / "app", library, f"-Wl,-rpath,{folder}"],
                   check=True, timeout=60)
    return [folder / "app"], f"it uses the MPI library {library}, which Backstay cannot save"


def shared_memory(folder):
    (folder / "shared").write_bytes(bytes(4096))
    (folder / "app.py").write_text(SHARES)
    return [PYTHON, folder / "app.py"], "it has memory that process "


@pytest.mark.skipif(not HERE, reason="no launcher is installed")
@pytest.mark.parametrize("make", [unknown_mpi, shared_memory])
def test_ranks_that_share_what_no_image_holds_run_unsaved(world, make):
    words, why = make(world.folder)
    # A version of the time before the program shares anything would be right: it starts within 2 s.
    running = start(world, list(map(str, line(HERE[0], 2, *words))), "--job", "app", "--interval",
                    2)
    out, told = running.communicate(timeout=100)
    assert (running.returncode, out.count("done")) == (0, 2), told
    assert why in told, told
    assert newest(world) == 0
