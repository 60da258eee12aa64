"""A rank is killed at a step of a version; what was reported before comes back, and the result is
right.

    strategies_test.py --agent BACKSTAYD --launcher "mpirun.mpich -n {ranks}" PROGRAM
    strategies_test.py ... --rounds 50 [--seed 7] PROGRAM

With --rounds a rank dies at any time, up to three times a round. The seed of a round that fails is
printed; `--rounds 1 --seed THAT` does the same again, but for the time.
"""

import argparse
import os
import random
import signal
import threading
from pathlib import Path

from heat_test import FOREVER, finish, start, undisturbed_checksum
from program import Program
from sandbox import Sandbox

RANKS = 4
PLATE = "400 128"  # a field of each rank is sent by itself
STEPS = 100
OWN, SHARED = "writers", "collective"
# (strategy, further settings, the rank that dies, where). The third time: two versions are there.
DEATHS = [
    ("file_per_process", {}, 1, "strategy.taken"), ("file_per_process", {}, 2, "commit.1"),
    ("file_per_process", {}, 2, "commit.3"), ("file_per_process", {}, 0, "copy.4"),
    ("file_per_process", {}, 0, "copy.5"),
    (SHARED, {}, 0, "strategy.opened"), (SHARED, {}, 3, "strategy.written"),
    (SHARED, {}, 3, "strategy.closed"), (SHARED, {"FILES": 2}, 2, "commit.3"),
    (OWN, {}, 1, "strategy.sending"), (OWN, {}, 2, "strategy.taken"), (OWN, {}, 2, "commit.1"),
    (OWN, {}, 2, "commit.3"), (OWN, {}, 0, "strategy.found"), (OWN, {}, 0, "copy.4"),
    (OWN, {"FILES": 1}, 3, "strategy.sending"), (OWN, {"FILES": 1}, 2, "strategy.written"),
]
WAYS = [("file_per_process", {}), (SHARED, {}), (SHARED, {"FILES": 2}), (OWN, {}),
        (OWN, {"FILES": 1})]


def victim(box: Sandbox, program: str, rank: int, failpoint: str) -> str:
    """A program in the place of `program`, one of whose ranks dies."""
    time = 8 if failpoint == "strategy.sending" else 3  # three fields are sent of each version
    script = box.folder / "victim"
    script.write_text(f"""#!/bin/sh
if [ "${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}" = {rank} ]; then
  export BACKSTAY_FAILPOINT={failpoint}=kill@{time}
fi
exec {program} "$@"
""")
    script.chmod(0o755)
    return str(script)


def sandbox_of(strategy: str, settings: dict, every_calls: int) -> Sandbox:
    box = Sandbox("/nonexistent", BACKSTAY_CHECKPOINT_POLICY="calls",
                  BACKSTAY_CHECKPOINT_EVERY_CALLS=every_calls, BACKSTAY_STRATEGY_NAME=strategy,
                  BACKSTAY_STRATEGY_RANKS_PER_WRITER=2)
    (box.folder / "shared").mkdir()
    box.set(BACKSTAY_DURABLE_DIR=box.folder / "shared",
            **{f"BACKSTAY_STRATEGY_{name}": value for name, value in settings.items()})
    return box


def die_and_come_back(options, strategy: str, settings: dict, rank: int, failpoint: str,
                      checksum: str) -> None:
    what = f"{strategy} {settings}, rank {rank} at {failpoint}"
    with sandbox_of(strategy, settings, 20) as box:
        with start(box, options, victim(box, options.program, rank, failpoint), STEPS,
                   ranks=RANKS) as first:
            code = first.end()
        assert code != 0, f"{what}: nobody died\n{first.report()}"
        reported = [int(line.split()[1]) for line in first.lines if line.startswith("version")]
        # Writers that write on have handed the last one over.
        safe = len(reported) - (strategy == OWN and "FILES" not in settings)
        second = finish(box, options, options.program, STEPS, ranks=RANKS)
        back = [int(line.split()[2]) for line in second.lines if line.startswith("restart")]
        assert back and back[0] >= safe >= 1, f"{what}: back from {back}\n{first.report()}"
        assert second.event("done")[-1] == checksum, f"{what}\n{second.report()}"
        versions = list(Path(box.folder, "shared/test").glob("v*"))
        assert all((path / "commit.durable").exists() for path in versions), what
        print(f"{what}: {len(reported)} reported, back from version {back[0]}")


def fill_the_disk(options, strategy: str, settings: dict) -> None:
    """There is room for one version and a half."""
    with sandbox_of(strategy, settings, 20) as box:
        run = f"{options.launcher.format(ranks=RANKS)} {options.program} {{}} 1000 1000"
        script = (f"mount -t tmpfs -o size=12m none {box.folder}/shared && "
                  f"{run.format(50)} && {run.format(60)}")
        with Program(["unshare", "-rm", "sh", "-c", script], box.environment, box.folder) as both:
            code = both.end()
        if any("unshare" in line for line in both.lines):
            print(f"left out: {both.lines}")
            return
        told = [line for line in both.lines if line.startswith(("version", "restart"))]
        if strategy == OWN and not settings:  # these were handed over
            told = [line for line in told if line not in ("version 2 step 40", "version 3 step 60")]
        assert code == 0 and told == ["version 1 step 20", "restart version 1 step 20"], \
            f"{strategy} {settings}\n{both.report()}"


def die_at_any_time(options, seed: int) -> None:
    draw = random.Random(seed)
    strategy, settings = draw.choice(WAYS)
    each = draw.randint(2, 3)
    with sandbox_of(strategy, settings | {"RANKS_PER_WRITER": each}, draw.randint(1, 40)) as box:
        told, step = 0, 0  # the newest version that must be there
        for _ in range(draw.randint(1, 3)):
            ranks = draw.randint(2, 5)
            writers = -(-ranks // each)
            with start(box, options, options.program, FOREVER, ranks) as run:
                for _ in range(draw.randint(1, 8)):
                    run.next_line("version")
                threading.Event().wait(draw.uniform(0, 0.05))
                os.kill(draw.choice(run.ranks(options.program)), signal.SIGKILL)
                run.end()
            came_back(run, told, step)
            reported = [line.split() for line in run.lines if line.startswith("version")]
            behind = strategy == OWN and settings.get("FILES", writers) == writers
            told, step = (int(reported[-1 - behind][i]) for i in (1, 3)) if len(reported) > behind \
                else (told, step)
        last = finish(box, options, options.program, step + 100, draw.randint(2, 5))
        came_back(last, told, step)
    assert last.event("done")[-1] == undisturbed_checksum(
        options, options.program, int(last.event("done")[2])), last.report()
    print(f"{seed}: {strategy} {settings}, back from version {told}", flush=True)


def came_back(run, told: int, step: int) -> None:
    back = [line.split() for line in run.lines if line.startswith("restart")]
    assert not told or back, f"version {told} is lost\n{run.report()}"
    assert not back or (int(back[0][2]) >= told and int(back[0][4]) >= step), (
        f"version {told}, step {step}\n{run.report()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agent", required=True)
    parser.add_argument("--launcher", required=True)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("program", type=os.path.abspath)
    options = parser.parse_args()
    options.ranks, options.arguments, options.strategy = RANKS, PLATE, ""
    for seed in range(options.seed, options.seed + options.rounds):
        print(f"round with seed {seed}", flush=True)
        die_at_any_time(options, seed)
    if options.rounds:
        return
    checksum = undisturbed_checksum(options, options.program, STEPS)
    for strategy, settings in WAYS:
        fill_the_disk(options, strategy, settings)
    for strategy, settings, rank, failpoint in DEATHS:
        die_and_come_back(options, strategy, settings, rank, failpoint, checksum)


main()
