"""The heat program is killed, restarted, and ends with the bits of an undisturbed run.

    heat_test.py --agent BACKSTAYD [--launcher "mpirun.openmpi -n {ranks}"] -- PROGRAM [ARGUMENT...]
    heat_test.py --agent BACKSTAYD --launcher ... --relay PROGRAM_A --relay PROGRAM_B ...

With --relay each program continues from the version that the one before it saved, on another number
of ranks. With --strategy the ranks write their versions by themselves, and there is no agent; in a
relay every second program has one.
"""

import argparse
import sys
from itertools import cycle

from program import Program
from sandbox import Sandbox

FOREVER = 10**9
PLATE = "98 64"
RANKS = 4
RELAY_RANKS = (4, 3, 6, 1, 4)  # more, fewer, one; 98 rows do not divide evenly by them


def words_of(program: str) -> list[str]:
    return [sys.executable, program] if program.endswith(".py") else [program]


def start(box: Sandbox, options, program: str, steps: int, ranks: int = 0) -> Program:
    command = [*options.launcher.format(ranks=ranks or options.ranks).split(), *words_of(program),
               str(steps), *options.arguments.split()]
    return Program(command, box.environment, box.folder)


def finish(box: Sandbox, options, program: str, steps: int, ranks: int = 0) -> Program:
    with start(box, options, program, steps, ranks) as run:
        code = run.end()
    assert code == 0, f"exit code {code}\n{run.report()}"
    return run


def undisturbed_checksum(options, program: str, steps: int) -> str:
    """The result of a run without any checkpoint, in a sandbox of its own."""
    with Sandbox(options.agent, BACKSTAY_CHECKPOINT_POLICY="request") as box:
        run = finish(box, options, program, steps)
        assert not any(line.startswith("version") for line in run.lines), run.report()
        return run.event("done")[-1]


def checkpoints_often(options) -> Sandbox:
    box = Sandbox(options.agent, BACKSTAY_CHECKPOINT_POLICY="calls",
                  BACKSTAY_CHECKPOINT_EVERY_CALLS=40)
    if options.strategy:
        shared = box.folder / "shared"
        shared.mkdir()
        box.set(BACKSTAY_DURABLE_DIR=shared, BACKSTAY_STRATEGY_NAME=options.strategy,
                BACKSTAY_STRATEGY_RANKS_PER_WRITER=2, BACKSTAY_AGENT_PROGRAM="/nonexistent",
                BACKSTAY_STRATEGY_HINTS="romio_cb_write=enable;no_such_hint=1")
    return box


def change_sides(box: Sandbox, options, with_agent: bool) -> None:
    """The next program of a relay has an agent, or none."""
    box.stop_agent()
    box.set(BACKSTAY_STRATEGY_NAME="agent" if with_agent else options.strategy,
            BACKSTAY_AGENT_PROGRAM=options.agent if with_agent else "/nonexistent")


def kill_and_restart(options, program: str) -> None:
    with checkpoints_often(options) as box:
        with start(box, options, program, FOREVER) as first:
            first.next_line("version 3 ")
            first.kill_rank(program)
            code = first.end()
        # Open MPI does not say which hints it knows.
        told = any("takes no notice of no_such_hint" in line for line in first.lines)
        assert told == (options.strategy == "collective" and "mpich" in options.launcher), \
            first.report()
        assert code != 0, f"a killed job must not end with 0\n{first.report()}"
        reported = [line.split() for line in first.lines if line.startswith("version")]
        # Writers may still write the newest one; the one before is durable by then.
        version, step = (int(reported[-2 if options.strategy == "writers" else -1][i])
                         for i in (1, 3))

        second = finish(box, options, program, step + 500)
        came_back, at_step = (int(second.event("restart")[i]) for i in (2, 4))
        assert came_back >= version, f"version {version} was reported and is lost\n{second.report()}"
        assert at_step >= step, second.report()
        assert int(second.event("version")[1]) > came_back, second.report()
        done, checksum = int(second.event("done")[2]), second.event("done")[-1]
    expected = undisturbed_checksum(options, program, done)
    assert checksum == expected, f"{checksum} after the restart, {expected} undisturbed, step {done}"
    print(f"killed after version {version}, back from version {came_back} (step {at_step}), step "
          f"{done}: {checksum}")


def relay(options) -> None:
    with checkpoints_often(options) as box:
        checksum, steps = "", 0
        # The first program once more at the end, so that a relay of one language changes its ranks,
        # too.
        for program, ranks in zip([*options.relay, options.relay[0]], cycle(options.relay_ranks)):
            steps += 100
            if options.strategy:
                change_sides(box, options, with_agent=steps % 200 == 0)
            run = finish(box, options, program, steps, ranks)
            restarted = [line for line in run.lines if line.startswith("restart")]
            assert bool(restarted) == (steps > 100), run.report()
            checksum = run.event("done")[-1]
            print(ranks, program, *restarted, run.lines[-1])
    expected = undisturbed_checksum(options, options.relay[0], steps)
    assert checksum == expected, f"{checksum} after the relay, {expected} undisturbed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agent", required=True)
    parser.add_argument("--launcher", default="")
    parser.add_argument("--relay", action="append", default=[])
    parser.add_argument("--strategy", default="")
    parser.add_argument("--arguments", default=PLATE, help="the program's, after the steps")
    parser.add_argument("program", nargs="?")
    parser.set_defaults(ranks=RANKS, relay_ranks=RELAY_RANKS)
    options = parser.parse_args()
    if options.relay:
        relay(options)
    else:
        kill_and_restart(options, options.program)


if __name__ == "__main__":
    main()
