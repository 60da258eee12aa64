"""The wave in the guide: its error falls as it must, and it survives a kill.

    waveguide_test.py --agent BACKSTAYD --launcher "mpirun.openmpi -n {ranks}" --mesher MESH.PY
        PROGRAM convergence|restart

convergence: with degree N the error falls with the element's size by an order of at least N.
restart: as heat_test.py, killed and back, and handed on to other numbers of ranks.
"""

import argparse
import subprocess
import sys
from math import log2

from heat_test import kill_and_restart, relay
from program import Program
from sandbox import Sandbox

RANKS = 2
DEGREES = (2, 3, 4, 5, 6)
MODES = ("TE11", "TM01")


def mesh(box: Sandbox, options, size: int) -> str:
    """Elements half as large for twice the size."""
    name = str(box.folder / f"guide{size}")
    subprocess.run([sys.executable, options.mesher, "--name", name, "--elements-across", str(size),
                    "--elements-along", str(3 * size)], check=True, stdout=subprocess.DEVNULL)
    return name


def error(box: Sandbox, options, name: str, degree: int, mode: str) -> float:
    command = [*options.launcher.format(ranks=RANKS).split(), options.program, "0.5T", name,
               str(degree), mode]
    with Program(command, box.environment, box.folder) as run:
        assert run.end() == 0, run.report()
        return float(run.event("done")[4])


def convergence(options) -> None:
    with Sandbox(options.agent, BACKSTAY_CHECKPOINT_POLICY="request") as box:
        large, small = mesh(box, options, 1), mesh(box, options, 2)
        for degree in DEGREES:
            for mode in MODES[:1 if degree % 2 else 2]:
                errors = [error(box, options, name, degree, mode) for name in (large, small)]
                order = log2(errors[0] / errors[1])
                print(f"{mode} degree {degree}: {errors[0]:.2e} {errors[1]:.2e} order {order:.2f}",
                      flush=True)
                assert order >= degree, f"{mode}, degree {degree}: {errors}"


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
    options = parser.parse_args()
    {"convergence": convergence, "restart": restart}[options.part](options)


main()
