"""The demonstration: a LAMMPS run loses a rank to `kill -9` and ends as if nothing had happened.

1. An undisturbed run, without any checkpoint, is the reference.
2. The same run under `backstay run`: in the middle one rank is killed; the job comes back by
   itself.
3. The thermodynamic output of both is compared, to the last bit.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from driver_run import DriverRun

try:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Table
except ImportError:
    sys.exit("demo: the Python package rich is missing; `scripts/setup demo` installs it")

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NAMES = ("temperature", "potential energy", "total energy", "pressure")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true", help="LAMMPS writes its own restart files")
    parser.add_argument("--deck", default=str(HERE / "in.lj"), help="LAMMPS input (default: in.lj)")
    parser.add_argument("--var", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"),
                        help="a LAMMPS variable, e.g. --var side 24 for 3.4 times the atoms")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--slice", type=int, default=25, help="steps between two checkpoints")
    parser.add_argument("--build", default=str(ROOT / "build" / "release"),
                        help="folder of the build")
    options = parser.parse_args()
    options.deck = str(Path(options.deck).resolve())
    if not Path(options.deck).is_file():
        parser.error(f"no such deck: {options.deck}")
    if options.ranks < 1 or options.slice < 1 or options.steps < 4 * options.slice:
        parser.error("at least one rank and four slices are needed")
    return options


class Demo:
    def __init__(self, options: argparse.Namespace, folder: Path, console: Console):
        self.options = options
        self.folder = folder
        self.console = console
        build = Path(options.build).resolve()
        self.backstay, self.agent = build / "src/bin/backstay", build / "src/bin/backstayd"
        self.driver = build / "examples/lammps/lammps_driver"
        self.killed_rank = options.ranks // 2
        self.killed_pid = self.killed_step = 0
        self.killed_at = 0.0

    def environment(self, policy: str) -> dict[str, str]:
        """An agent, a folder and a job of the demonstration's own."""
        settings = {
            "BACKSTAY_JOB": "lammps-demo",
            "BACKSTAY_DIR": self.folder / "storage",
            "BACKSTAY_AGENT_SOCKET": self.folder / "agent.sock",
            "BACKSTAY_AGENT_LOG_FILE": self.folder / "agent.log",
            "BACKSTAY_AGENT_PROGRAM": self.agent,
            "BACKSTAY_POOL_SIZE_MIB": 128,
            "BACKSTAY_CHECKPOINT_POLICY": policy,
            "BACKSTAY_CHECKPOINT_EVERY_CALLS": 1,
            "BACKSTAY_CHECKPOINT_WAIT_AT_END": "true",
            "LAMMPS_POTENTIALS": os.environ.get("LAMMPS_POTENTIALS",
                                                "/usr/share/lammps/potentials"),
        }
        if os.geteuid() == 0:  # Open MPI wants to be asked twice
            settings |= {"OMPI_ALLOW_RUN_AS_ROOT": 1, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": 1}
        if "BACKSTAY_STRATEGY_NAME" in os.environ:  # the ranks write by themselves
            settings["BACKSTAY_DURABLE_DIR"] = self.folder / "shared"
            settings["BACKSTAY_DURABLE_DIR"].mkdir(exist_ok=True)
        return dict(os.environ) | {name: str(value) for name, value in settings.items()}

    def command(self, name: str) -> list[str]:
        options = self.options
        words = ["mpirun.openmpi" if shutil.which("mpirun.openmpi") else "mpirun",
                 "--oversubscribe",
                 "-n", str(options.ranks), str(self.driver), options.deck, "--steps",
                 str(options.steps),
                 "--slice", str(options.slice), "--log", str(self.folder / f"{name}.log")]
        for variable in options.var:
            words += ["--var", *variable]
        return words + (["--files"] if options.files else [])

    def reference(self, progress: Progress) -> DriverRun:
        run = DriverRun(self.command("reference"), self.environment("request"), str(self.folder))
        bar = progress.add_task("undisturbed run", total=self.options.steps, note="")
        run.run(lambda _, kind, values: self.advance(progress, bar, kind, values))
        return run

    def disturbed(self, progress: Progress) -> DriverRun:
        command = [str(self.backstay), "run", "--retries", "3", "--", *self.command("disturbed")]
        run = DriverRun(command, self.environment("calls"), str(self.folder))
        bar = progress.add_task("run under backstay", total=self.options.steps, note="")

        def on_event(now: DriverRun, kind: str, values: list[str]) -> None:
            self.advance(progress, bar, kind, values)
            if kind == "message":
                self.say(values[0])
            elif kind == "restart":
                self.say(f"the job is back: version {values[1]}, step {values[3]}")
            elif kind == "version" and self.is_moment(int(values[2])):
                self.kill(now)

        run.run(on_event)
        return run

    def advance(self, progress: Progress, bar, kind: str, values: list[str]) -> None:
        if kind == "thermo":
            progress.update(bar, completed=int(values[0]))
        elif kind == "restart":
            progress.update(bar, completed=int(values[3]))
        elif kind == "version":
            progress.update(bar,
                            note=f"version {values[0]}, blocked {1000 * float(values[6]):.1f} ms")

    def is_moment(self, step: int) -> bool:
        """The middle is reached and no rank was killed yet."""
        return not self.killed_pid and 2 * step >= self.options.steps

    def kill(self, run: DriverRun) -> None:
        """The ranks that compute the slice behind the newest version."""
        self.killed_pid, self.killed_step = run.pids[self.killed_rank], run.versions[-1].step
        self.killed_at = time.monotonic()
        run.kill(self.killed_rank)
        self.say(f"kill -9 {self.killed_pid} (rank {self.killed_rank}), behind step "
                 f"{self.killed_step}")

    def say(self, text: str) -> None:
        self.console.print(f"  {text}", highlight=False, markup=False, soft_wrap=True)

    def stop_agent(self) -> None:
        """Its job is done; it drains first. It would end by itself after a while."""
        ended = subprocess.run([self.backstay, "agent", "stop"], env=self.environment("calls"),
                               text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if ended.returncode:
            self.say(ended.stdout)


def failure(run: DriverRun, options: argparse.Namespace) -> str:
    """Why a run did not do what it had to, with what was said last; empty if it did."""
    if run.exit_code == 0 and run.done_step == options.steps:
        return ""
    last = "\n    ".join(run.messages[-15:])
    return f"{' '.join(run.command)}\n  ended with exit code {run.exit_code}; it said last:\n    {last}"


def compare(expected: DriverRun, found: DriverRun) -> tuple[int, list[float]]:
    """How many lines have the same bits, and the largest relative difference of each quantity."""
    same, worst = 0, [0.0] * len(NAMES)
    for step, values in expected.thermo.items():
        others = [run[step] for run in (found.thermo, found.repeated) if step in run]
        same += bool(others) and all(other == values for other in others)
        for other in others:
            for i, (a, b) in enumerate(zip(map(float, values), map(float, other))):
                worst[i] = max(worst[i], abs(a - b) / max(abs(a), 1e-300))
    return same, worst


def agreement(expected: DriverRun, found: DriverRun) -> tuple[bool, str]:
    same, worst = compare(expected, found)
    total = len(expected.thermo)
    if same == total:
        return True, f"all {total} lines of thermodynamic output are bit-identical to the undisturbed run"
    largest = ", ".join(f"{name} {difference:.1e}" for name, difference in zip(NAMES, worst))
    return False, f"only {same} of {total} lines are bit-identical; largest relative differences: {largest}"


def summary(demo: Demo, expected: DriverRun, found: DriverRun, verdict: str) -> Table:
    options, back = demo.options, found.restarts[-1]
    blocked = sorted(version.blocked_s for version in found.versions)
    caught_up = found.reached_at[min(demo.killed_step + options.slice,
                                     options.steps)] - demo.killed_at
    slice_s = expected.seconds * options.slice / options.steps
    ways = "LAMMPS's own restart files" if options.files else "arrays of atoms"
    table = Table(title="What happened", show_header=False, title_justify="left", padding=(0, 1))
    rows = {
        "job": f"LAMMPS, {Path(options.deck).name}: {expected.atoms} atoms on {options.ranks} "
               f"ranks, "
               f"{options.steps} steps, saved as {ways}",
        "killed": f"rank {demo.killed_rank} (process {demo.killed_pid}) by kill -9, while it "
                  f"computed the steps "
                  f"after {demo.killed_step}; MPI then ends the whole job",
        "came back": f"by itself, from version {back.version} (step {back.step}), "
                     f"{back.at - demo.killed_at:.2f} s after the kill",
        "lost": f"{max(0.0, caught_up - slice_s):.2f} s: {caught_up:.2f} s from the kill until the "
                f"interrupted "
                f"{options.slice} steps were done, instead of {slice_s:.2f} s",
        "blocked": f"{len(blocked)} versions, each stopped the program for "
                   f"{1000 * statistics.median(blocked):.1f} ms (median; most "
                   f"{1000 * blocked[-1]:.1f} ms), "
                   f"{sum(blocked):.3f} s of {found.seconds:.1f} s in all; also the time in which "
                   f"ranks wait for each other",
        "result": verdict,
    }
    for name, text in rows.items():
        table.add_row(name, text)
    return table


def work_folder() -> Path:
    """A fresh one. Short: a socket lies in it, and the path of a socket has at most 107 bytes."""
    parent = Path(tempfile.gettempdir()) / f"backstay-demo-{os.getuid()}"
    parent.mkdir(mode=0o700, exist_ok=True)
    if parent.stat().st_uid != os.getuid():
        sys.exit(f"demo: {parent} belongs to another user")
    return Path(tempfile.mkdtemp(dir=parent))


def main() -> int:
    options = parse()
    console = Console(soft_wrap=False)
    folder = work_folder()
    demo = Demo(options, folder, console)
    for program in (demo.backstay, demo.agent, demo.driver):
        if not program.exists():
            sys.exit(f"demo: {program} is missing; `make demo` builds it (LAMMPS needs "
                     f"liblammps-dev and Open MPI)")
    console.print(f"A LAMMPS run on {options.ranks} ranks: once undisturbed, then under `backstay "
                  f"run` with a rank killed.",
                  markup=False, highlight=False)
    columns = (TextColumn("{task.description:18}"), BarColumn(),
               TextColumn("step {task.completed:.0f}"),
               TimeElapsedColumn(), TextColumn("{task.fields[note]}"))
    try:
        with Progress(*columns, console=console) as progress:
            expected = demo.reference(progress)
            found = demo.disturbed(progress) if not failure(expected, options) else expected
    finally:
        demo.stop_agent()
    wrong = failure(expected, options) or failure(found, options)
    if not wrong and (not demo.killed_pid or not found.restarts):
        wrong = "no rank was killed and brought back: is the run too short?"
    if wrong:
        console.print(f"demo: {wrong}\n  its files are kept in {folder}", markup=False,
                      highlight=False)
        return 1
    good, verdict = agreement(expected, found)
    console.print(summary(demo, expected, found, verdict))
    if good:
        shutil.rmtree(folder)
    else:
        console.print(f"demo: the results differ; files are kept in {folder}", highlight=False)
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
