"""The wave in the guide: its error falls as it must, and it survives a kill.

    waveguide_test.py --agent BACKSTAYD --launcher "mpirun.openmpi -n {ranks}" --mesher MESH.PY
        PROGRAM convergence|restart

convergence: with degree N the error falls with the element's size by an order of at least N.
restart: as heat_test.py, killed and back, and handed on to other numbers of ranks.
"""

import argparse
import subprocess
import sys
from math import log

from heat_test import kill_and_restart, relay
from program import Program
from sandbox import Sandbox

RANKS = 2
RELAY_RANKS = (2, 3, 1)  # few: MPICH's ranks take turns on few cores, at five exchanges a step
TIME = "0.125T"  # periods
CASES = (("TE11", (2, 3, 4, 5, 6)), ("TM01", (2, 4)))
SIZES = (2, 3)  # the elements' sizes are as 1 to these


def mesh(box: Sandbox, options, size: int) -> str:
    name = str(box.folder / f"guide{size}")
    subprocess.run([sys.executable, options.mesher, "--name", name, "--elements-across", str(size),
                    "--elements-along", str(max(3, 2 * size))], check=True,
                   stdout=subprocess.DEVNULL)
    return name


def error(box: Sandbox, options, name: str, degree: int, mode: str) -> float:
    command = [*options.launcher.format(ranks=RANKS).split(), options.program, TIME, name,
               str(degree), mode]
    with Program(command, box.environment, box.folder) as run:
        assert run.end() == 0, run.report()
        return float(run.event("done")[4])


def convergence(options) -> None:
    with Sandbox(options.agent, BACKSTAY_CHECKPOINT_POLICY="request") as box:
        meshes = [mesh(box, options, size) for size in SIZES]
        for mode, degrees in CASES:
            for degree in degrees:
                coarse, fine = (error(box, options, name, degree, mode) for name in meshes)
                order = log(coarse / fine) / log(SIZES[1] / SIZES[0])
                print(f"{mode} degree {degree}: {coarse:.2e} {fine:.2e} order {order:.2f}",
                      flush=True)
                assert order >= degree, f"{mode}, degree {degree}: order {order}"


def restart(options) -> None:
    with Sandbox(options.agent) as box:
        options.arguments = f"{mesh(box, options, 1)} 2"
        kill_and_restart(options, options.program)
        options.relay = 4 * [options.program]
        relay(options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agent", required=True)
    parser.add_argument("--launcher", required=True)
    parser.add_argument("--mesher", required=True)
    parser.add_argument("program")
    parser.add_argument("part", choices=["convergence", "restart"])
    parser.set_defaults(ranks=RANKS, relay_ranks=RELAY_RANKS, strategy="")
    options = parser.parse_args()
    {"convergence": convergence, "restart": restart}[options.part](options)


main()
