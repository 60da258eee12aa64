"""`backstay run --transparent -- mpirun -n 2 PROGRAM` with LAMMPS, HPCC and GROMACS as Debian has
them: killed at random moments, and the results are those of an undisturbed run.

BACKSTAY_SEED repeats a run; BACKSTAY_LIVES says how often a rank of each program is killed.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from killed import RANKS, kill_and_compare
from ranks import HERE, line
from transparent import nothing_is_left, seed  # noqa: F401 (fixtures)

HPCC_INPUT = Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")
EAM_POTENTIAL = Path("/usr/share/lammps/potentials/Cu_u3.eam")

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
    """The embedded atom model; what it prints of each 50th step has all digits of the energies."""

    def prepare(self, folder):
        if shutil.which("lmp") is None or not EAM_POTENTIAL.exists():
            pytest.skip("no lmp (Debian: lammps, lammps-data)")
        (folder / "in.deck").write_text(EAM)
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
        assert "PASSED" in text, text
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


@pytest.mark.parametrize("what", [Lammps(), Hpcc(), Gromacs()], ids=["lammps", "hpcc", "gromacs"])
def test_killed_at_random(world, what):
    if "openmpi" not in HERE:
        pytest.skip("no Open MPI, with which Debian builds them")
    words = line("openmpi", RANKS, *what.prepare(world.folder))
    kill_and_compare(world, words, lambda: what.results(world.folder),
                     lambda: what.prepare(world.folder))


def test_the_example(world):
    if shutil.which("lmp") is None or not {"openmpi", "mpich"} <= set(HERE):
        pytest.skip("no lmp, or not both MPIs (Debian: lammps, openmpi-bin, mpich)")
    example = Path(__file__).resolve().parents[2] / "examples" / "transparent" / "lammps"
    folders = f"{Path(os.environ['BACKSTAY_TEST_PROGRAM']).parent}:{world.env['PATH']}"
    done = subprocess.run([example, world.folder], env={**world.env, "PATH": folders},
                          cwd=world.folder, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "102 lines of results are those of the undisturbed run" in done.stdout
    assert "exit code 137" in done.stderr and "runs over MPICH" in done.stderr, done.stderr
