#!/usr/bin/env python3
"""Unmodified MPI programs behave with the real MPI in the lower half as they do without.

Usage: lower_half_test.py BOOT MPIRUN FOLDER PROGRAMS MPI [unittest arguments]
FOLDER holds backstay-lower and our libraries; PROGRAMS the programs, named program.MPI. Standard
library only.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from job import environment

BOOT, MPIRUN, FOLDER, PROGRAMS, MPI = sys.argv[1:6]
REAL = {"mpich": "libmpich.so.12", "openmpi": "libmpi.so.40"}[MPI]
LOWER = range(0x4B5E00000000, 0x4C5E00000000)
OURS = range(0x4A5E00000000, 0x4C5E00000000)
DEADLINE_S = 60
# What an unmodified program and our library map; the kernel's pages too.
UPPER = re.compile(
    r"$|\[(heap|stack|vdso|vvar.*|vsyscall)\]$|.*/(maps\.\w+|libc\.so\.6|ld-linux-x86-64\.so\.2)$"
    + "|"
    + re.escape(f"{Path(FOLDER).resolve()}/{REAL}")
    + "$"
)

# Lennard-Jones, as LAMMPS's own bench has it, small; all digits of the energies.
DECK = """\
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 6 0 6 0 6
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
thermo 10
thermo_modify format float %20.15g
run 50
"""


def run(command, **changes):
    """(code, standard output, standard error); the whole process group ends with it."""
    process = subprocess.Popen(
        list(map(str, command)),
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, error = process.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, error = process.communicate()
        raise AssertionError(f"{command} does not end:\n{out}\n{error}") from None
    return process.returncode, out, error


def program(name):
    return Path(PROGRAMS) / f"{name}.{MPI}"


class LowerHalf(unittest.TestCase):
    def both(self, ranks, name, *arguments, **changes):
        launcher = [MPIRUN, "-n", ranks]
        native = run([*launcher, program(name), *arguments], **changes)
        ours = run(
            [*launcher, BOOT, "--mpi", FOLDER, "--", program(name), *arguments], **changes
        )
        self.assertEqual(native[0], 0, native)
        self.assertEqual(ours, native)
        return native[1]

    def test_the_output_is_bit_for_bit_the_same(self):
        for ranks in (1, 2, 4):
            with self.subTest(ranks=ranks):
                self.assertEqual(self.both(ranks, "halo", 30).count("checksum"), 30)

    def test_handles_callbacks_and_arrays(self):
        out = self.both(4, "calls")
        self.assertEqual(out.count("right"), 4, out)

    def test_handlers_of_signals_in_calls(self):
        out = self.both(2, "signals", 300)
        self.assertEqual(out, "right\n" * 2)

    def test_a_shell_and_exec_in_between(self):
        halo = program("halo")
        _, native, _ = run([MPIRUN, "-n", 2, halo, 3])
        shell = ["/bin/sh", "-c", f"true; exec {halo} 3"]
        with tempfile.TemporaryDirectory() as folder:
            # The control descriptor makes exec come back to the boot program.
            control = Path(folder) / "control"
            os.mkfifo(control)
            boot = f"{BOOT} --control 9 --mpi {FOLDER} -- "
            inner = f'exec {boot}"$@" 9<>{control}'
            code, out, error = run([MPIRUN, "-n", 2, "/bin/sh", "-c", inner, "sh", *shell])
        self.assertEqual((code, out), (0, native), error)

    def test_the_lower_half_is_in_its_range_and_the_program_is_not(self):
        with tempfile.TemporaryDirectory() as folder:
            maps = [program("maps"), folder + "/"]
            code, _, error = run([MPIRUN, "-n", 2, BOOT, "--mpi", FOLDER, "--", *maps])
            self.assertEqual(code, 0, error)
            out = "".join(each.read_text() for each in Path(folder).iterdir())
        seen = 0
        for line in out.splitlines():
            found = re.match(r"map \d ([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \d+ *(.*)", line)
            if found is None:
                continue
            start, end = int(found[1], 16), int(found[2], 16)
            inside = start in OURS
            self.assertEqual(inside, end - 1 in OURS, line)
            if not inside:
                self.assertRegex(found[4], UPPER)
                self.assertFalse(found[3].endswith("s"), line)
            elif REAL in found[4]:
                seen += start in LOWER
        self.assertGreater(seen, 2 * 3, "the real library is not in the range")
        handled = re.findall(r"handlers \d (\w+)", out)
        self.assertEqual(len(handled), 2, out[-500:])
        for mask in handled:
            for crash in (signal.SIGILL, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV):
                self.assertEqual(int(mask, 16) >> (crash - 1) & 1, 0, (mask, crash))
        breaks = re.findall(r"break \d 0x(\w+) main 0x(\w+)", out)
        self.assertEqual(len(breaks), 2)
        for end, main in breaks:
            self.assertLess(abs(int(end, 16) - int(main, 16)), 1 << 40)

    def refused(self, words, command, **changes):
        code, out, error = run(command, **changes)
        self.assertEqual((code, out), (126, ""), error)
        self.assertIn(words, error)
        self.assertTrue(error.startswith("backstay: "), error)

    def test_without_the_boot_program(self):
        words = "started by backstay-boot --mpi only"
        self.refused(words, [program("halo")], LD_LIBRARY_PATH=FOLDER)

    @unittest.skipUnless(program("lammps").exists(), "it needs liblammps for this MPI")
    def test_lammps(self):
        rows = re.compile(r"^ +\d+ +\d+\.\d+ .*", re.M)
        with tempfile.TemporaryDirectory() as folder:
            deck = Path(folder) / "in.lj"
            deck.write_text(DECK)
            launcher = [MPIRUN, "-n", 4]
            native = run([*launcher, program("lammps"), deck])
            ours = run([*launcher, BOOT, "--mpi", FOLDER, "--", program("lammps"), deck])
        self.assertEqual((native[0], ours[0]), (0, 0), ours)
        self.assertEqual(len(rows.findall(native[1])), 6, native)
        self.assertEqual(rows.findall(ours[1]), rows.findall(native[1]))

    def test_without_a_folder(self):
        words = f"this program uses MPI ({REAL}), and no folder was given by --mpi"
        with tempfile.TemporaryDirectory() as folder:
            control = Path(folder) / "control"
            os.mkfifo(control)
            shell = f'exec {BOOT} --control 9 -- "$@" 9<>{control}'
            command = ["/bin/sh", "-c", shell, "sh", program("halo")]
            self.refused(words, command, LD_LIBRARY_PATH=FOLDER)

    def test_a_folder_without_the_lower_half(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(Path(FOLDER) / REAL, folder)
            self.refused(
                f"{folder}/backstay-lower: not found",
                [BOOT, "--mpi", folder, "--", program("halo")],
            )

    def test_a_real_library_that_cannot_be_opened(self):
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / REAL
            subprocess.run(["cc", "-shared", f"-Wl,-soname,{REAL}", "-x", "c", "/dev/null",
                            "-o", library], check=True, timeout=60)
            self.refused(
                f"this is no MPI library: {library}",
                [BOOT, "--mpi", FOLDER, "--", program("halo")],
                LD_LIBRARY_PATH=folder,
            )

    def test_a_program_without_mpi_has_no_lower_half(self):
        command = [BOOT, "--mpi", FOLDER, "--", "/bin/cat", "/proc/self/maps"]
        code, out, _ = run(command)
        self.assertEqual(code, 0)
        self.assertNotIn("4b5e00000000", out)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[6:]])
