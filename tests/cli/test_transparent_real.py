"""`backstay run --transparent -- mpirun -n 2 PROGRAM` with LAMMPS, HPCC and GROMACS as Debian has
them: a rank is killed at random moments, and the results are those of an undisturbed run.

BACKSTAY_SEED repeats a run; BACKSTAY_LIVES says how often a rank of each program is killed.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from ranks import HERE, line
from transparent import (  # noqa: F401 (two are fixtures)
    LIVES, kill_at_random, nothing_is_left, seed, start)

RANKS = 2  # waiting ranks take a core each
HPCC_INPUT = Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")
EAM_POTENTIAL = Path("/usr/share/lammps/potentials/Cu_u3.eam")

LJ = """
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 50
run 6000
"""
EAM = f"""
units metal
atom_style atomic
lattice fcc 3.615
region box block 0 8 0 8 0 8
create_box 1 box
create_atoms 1 box
pair_style eam
pair_coeff 1 1 {EAM_POTENTIAL}
velocity all create 1600.0 376847 loop geom
neighbor 1.0 bin
neigh_modify every 1 delay 5 check yes
fix 1 all nve
timestep 0.005
thermo 50
run 4000
"""
TOPOLOGY = """
#include "amber99.ff/forcefield.itp"
#include "amber99.ff/tip3p.itp"
[ system ]
water
[ molecules ]
"""
DYNAMICS = """
integrator = md
nsteps = 4000
dt = 0.002
nstenergy = 100
cutoff-scheme = Verlet
coulombtype = PME
rcoulomb = 0.8
rvdw = 0.8
tcoupl = v-rescale
tc-grps = System
tau_t = 0.1
ref_t = 300
gen_vel = yes
gen_seed = 1
ld_seed = 1
"""


class Lammps:
    """What it prints of each 50th step has all digits of the energies."""

    def __init__(self, deck):
        self.deck = deck

    def prepare(self, folder):
        if shutil.which("lmp") is None or (self.deck is EAM and not EAM_POTENTIAL.exists()):
            pytest.skip("no lmp (Debian: lammps, lammps-data)")
        (folder / "in.deck").write_text(self.deck)
        return ["lmp", "-in", "in.deck", "-log", "log"]

    def results(self, folder):
        text = (folder / "log").read_text()
        return re.findall(r"^ +\d+ +\S+ +-\d.*$", text, re.MULTILINE)


class Hpcc:
    """Seven benchmarks that check themselves; the other lines have times."""

    def prepare(self, folder):
        if shutil.which("hpcc") is None or not HPCC_INPUT.exists():
            pytest.skip("no hpcc (Debian: hpcc)")
        text = HPCC_INPUT.read_text()
        text = re.sub(r"^2( +Ps)$", r"1\1", text, flags=re.MULTILINE)  # 1 x 2 ranks
        text = re.sub(r"^1000( +Ns)$", r"800\1", text, flags=re.MULTILINE)
        (folder / "hpccinf.txt").write_text(text)
        (folder / "hpccoutf.txt").unlink(missing_ok=True)
        return ["hpcc"]

    def results(self, folder):
        text = (folder / "hpccoutf.txt").read_text()
        return [
            text.count("PASSED"),
            text.count("FAILED"),
            re.findall(r"^(?:Found \d+ errors|\w+Success=).*$", text, re.MULTILINE),
        ]


class Gromacs:
    """The coordinates at the end."""

    def prepare(self, folder):
        if shutil.which("gmx_mpi") is None:
            pytest.skip("no gmx_mpi (Debian: gromacs)")
        if not (folder / "t.tpr").exists():
            (folder / "topol.top").write_text(TOPOLOGY)
            (folder / "md.mdp").write_text(DYNAMICS)
            for words in ("solvate -cs spc216 -box 2.2 2.2 2.2 -o w.gro -p topol.top",
                          "grompp -f md.mdp -c w.gro -p topol.top -o t.tpr -maxwarn 5"):
                subprocess.run(["gmx", *words.split()], cwd=folder, check=True,
                               capture_output=True, timeout=100)
        return "gmx_mpi mdrun -s t.tpr -deffnm done -reprod -ntomp 1".split()

    def results(self, folder):
        return [(folder / "done.gro").read_text()]


@pytest.mark.parametrize("what", [Lammps(LJ), Lammps(EAM), Hpcc(), Gromacs()],
                         ids=["lammps-lj", "lammps-eam", "hpcc", "gromacs"])
def test_killed_at_random(world, what):
    if "openmpi" not in HERE:
        pytest.skip("no Open MPI, with which Debian builds them")
    words = list(map(str, line("openmpi", RANKS, *what.prepare(world.folder))))
    subprocess.run(words, cwd=world.folder, env=world.env, stdin=subprocess.DEVNULL, check=True,
                   capture_output=True, timeout=300)
    expected = what.results(world.folder)
    assert expected and expected[0], expected
    killed = 0
    for _ in range(20):  # some end before they have been killed so often
        what.prepare(world.folder)
        with open(world.folder / "out", "wb") as out:
            running = start(world, words, "--job", "app", "--fresh", "--interval", 0.3,
                            "--retries", 2 * LIVES, out=out)
            killed += kill_at_random(world, running, LIVES - killed, "backstay-boot", one=True)
            _, told = running.communicate(timeout=600)
        assert running.returncode == 0, told
        assert what.results(world.folder) == expected, told
        if killed >= LIVES:
            return
    raise AssertionError(f"it was killed {killed} times only")
