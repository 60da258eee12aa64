"""A rank is killed at a step of a version; what was reported before comes back, and the result is
right.

    strategies_test.py --agent BACKSTAYD --launcher "mpirun.mpich -n {ranks}" PROGRAM
"""

import argparse
from pathlib import Path

from heat_test import PLATE, finish, start, undisturbed_checksum
from sandbox import Sandbox

RANKS = 4
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


def die_and_come_back(options, strategy: str, settings: dict, rank: int, failpoint: str,
                      checksum: str) -> None:
    what = f"{strategy} {settings}, rank {rank} at {failpoint}"
    with Sandbox("/nonexistent", BACKSTAY_CHECKPOINT_POLICY="calls",
                 BACKSTAY_CHECKPOINT_EVERY_CALLS=20, BACKSTAY_STRATEGY_NAME=strategy,
                 BACKSTAY_STRATEGY_RANKS_PER_WRITER=2) as box:
        shared = box.folder / "shared"
        shared.mkdir()
        box.set(BACKSTAY_DURABLE_DIR=shared,
                **{f"BACKSTAY_STRATEGY_{name}": value for name, value in settings.items()})
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
        versions = [path.name for path in Path(shared, "test").glob("v*")]
        assert all(Path(shared, "test", name, "commit.durable").exists() for name in versions), what
        print(f"{what}: {len(reported)} reported, back from version {back[0]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agent", required=True)
    parser.add_argument("--launcher", required=True)
    parser.add_argument("program")
    options = parser.parse_args()
    options.ranks, options.arguments, options.strategy = RANKS, PLATE, ""
    checksum = undisturbed_checksum(options, options.program, STEPS)
    for strategy, settings, rank, failpoint in DEATHS:
        die_and_come_back(options, strategy, settings, rank, failpoint, checksum)


main()
