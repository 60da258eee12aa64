#!/usr/bin/env python3
"""Kills a rank of the wave in the guide under each strategy, and compares what comes back.

The field of each job that came back is then exported for ParaView, where this Backstay can do so.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build" / "release"
STRATEGIES = ["agent", "file_per_process", "collective", "writers"]


def ranks_of(parent: int, program: str) -> list[int]:
    """Process ids of the program below `parent`."""
    tasks = Path(f"/proc/{parent}/task").glob("*/children")
    found = []
    for child in [int(pid) for task in tasks for pid in task.read_text().split()]:
        words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        found += [child] if words[0] == program.encode() else ranks_of(child, program)
    return found


def run(options, words: list[str], **settings: str) -> list[str]:
    """The program's last words, from "error" on. Behind `backstay run` a rank is killed."""
    program = str(options.program)
    command = [*words, *options.launcher.format(ranks=options.ranks).split(), program,
               options.steps, str(options.folder / "guide"), str(options.degree)]
    result, versions, killed, back = [], 0, False, ""
    with subprocess.Popen(command, env=os.environ | settings, text=True,
                          stdout=subprocess.PIPE) as process:
        for line in process.stdout:
            versions += line.startswith("version")
            if versions == 3 and not killed:
                killed = True
                os.kill(ranks_of(process.pid, program)[-1], signal.SIGKILL)
                print(f"  a rank is killed after {line.strip()}", flush=True)
            if line.startswith("restart"):
                back = line.strip()
                print(f"  {back}", flush=True)
            if line.startswith("done"):
                result = line.split()[3:]
    if process.returncode or not result or (words and not back):
        sys.exit(f"show: {' '.join(command)}: exit code {process.returncode}; {back or 'not back'}")
    return result


def export(options, job: str, versions: Path) -> None:
    shown = subprocess.run([options.backstay, "export", "--help"], text=True, capture_output=True)
    if "--vtk" not in shown.stdout:
        print("  not exported: this `backstay export` has no --vtk")
        return
    output = options.output / job
    shutil.rmtree(output, ignore_errors=True)
    subprocess.run([options.backstay, "export", job, "--vtk", "--points", "xyz", "--cells", "cells",
                    "--dir", versions, "-o", output], check=True)
    print(f"  exported to {output}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("strategies", nargs="*", default=STRATEGIES, help=" ".join(STRATEGIES))
    parser.add_argument("--program", default=BUILD / "examples/waveguide/openmpi/waveguide")
    parser.add_argument("--backstay", default=BUILD.parents[1] / "bin/backstay")
    parser.add_argument("--launcher", default="mpirun.openmpi --oversubscribe -n {ranks}")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", default="2T", help="steps, or periods with a T")
    parser.add_argument("--degree", type=int, default=4)
    parser.add_argument("--output", type=Path, default=Path("fields"), help="folder of the exports")
    options = parser.parse_args()
    options.folder = Path(tempfile.mkdtemp(prefix="waveguide-"))
    subprocess.run([HERE / "mesh.py", "--name", options.folder / "guide"], check=True)
    (options.folder / "durable").mkdir()
    settings = {"DIR": options.folder / "local", "DURABLE_DIR": options.folder / "durable",
                "AGENT_SOCKET": options.folder / "agent.sock", "CHECKPOINT_EVERY_CALLS": 20,
                "STRATEGY_RANKS_PER_WRITER": 2}
    os.environ |= {f"BACKSTAY_{name}": str(value) for name, value in settings.items()}
    if os.geteuid() == 0:
        os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    print("undisturbed")
    expected = run(options, [], BACKSTAY_CHECKPOINT_POLICY="request")
    print(f"  {' '.join(expected)}")
    for strategy in options.strategies:
        print(strategy)
        job = f"waveguide-{strategy}"
        found = run(options, [str(options.backstay), "run", "--quiet", "--job", job, "--"],
                    BACKSTAY_CHECKPOINT_POLICY="calls", BACKSTAY_STRATEGY_NAME=strategy)
        if found != expected:
            sys.exit(f"show: {' '.join(found)} after the kill, {' '.join(expected)} without")
        print(f"  {' '.join(found)}: the same bits")
        export(options, job, options.folder / ("local" if strategy == "agent" else "durable"))
    subprocess.run([options.backstay, "agent", "stop"], check=False)
    shutil.rmtree(options.folder)


main()
