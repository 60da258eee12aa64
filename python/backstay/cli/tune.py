"""`backstay tune`: a program's own versions, written by one strategy after the other."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from typing import Annotated, NamedTuple, Optional

import typer

from ..plan import sweep
from ..report import events, logs
from .pictures import needs
from .usage import CommandError, printable, say

EPILOG = """\b
Examples:
  backstay tune /scratch/versions -- mpirun -n 64 ./solver input
  backstay tune /scratch/versions --only writers --figure files.png -- mpirun -n 64 ./solver input
  backstay tune /scratch/versions --dry-run -- mpirun -n 64 ./solver input

Exit codes: 0 ok, 1 no setting worked, 2 wrong usage, 3 no such folder, 127 no such launcher,
128 + n signal n ended it."""
PATH = "backstay tune"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOOK_S, GRACE_S, LAST_LINES = 0.1, 5.0, 8


class Options(NamedTuple):
    folder: pathlib.Path
    command: list[str]
    versions: int
    timeout_s: float
    signals: list[int]  # that came: it ends, and removes what was written


class TrialError(Exception):
    """A setting cannot be measured."""


def _environment(options: Options, setting: sweep.Setting, job: str, storage: str) -> dict:
    """The user's, with the setting, and a version at every call."""
    taken = ("BACKSTAY_JOB_NAME", "BACKSTAY_STORAGE_DIR")
    return {**{key: value for key, value in os.environ.items() if key not in taken},
            **{f"BACKSTAY_STRATEGY_{key.upper()}": str(value) for key,
               value in setting._asdict().items()},
            "BACKSTAY_JOB": job, "BACKSTAY_DIR": storage,
            "BACKSTAY_DURABLE_DIR": str(options.folder),
            "BACKSTAY_CHECKPOINT_POLICY": "calls", "BACKSTAY_CHECKPOINT_EVERY_CALLS": "1"}


def _left(job: str) -> list[int]:
    """Processes of the job on this host: ranks may be in process groups of their own."""
    mark, found = f"\0BACKSTAY_JOB={job}\0".encode(), []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in b"\0" + (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def _end(process: subprocess.Popen, job: str) -> None:
    """Ends the launcher, which ends its ranks, and then what is left."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, number)
            process.wait(GRACE_S)
    deadline = time.monotonic() + GRACE_S
    while (left := _left(job)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK_S)


class Versions:
    """What a job's log says of each version, kept while it is written."""

    def __init__(self, folder: pathlib.Path):
        self.folder, self.ranks, self.told, self.failed = folder, 0, {}, ""

    def look(self) -> list[dict]:
        """The whole versions so far: their events by kind."""
        with contextlib.suppress(logs.LogError, OSError):  # not yet
            for one in events.read(self.folder).events:
                self.ranks = int(one.get("ranks", 0)) if one["event"] == "run_begin" else self.ranks
                if one["event"] == "capture_failed":
                    self.failed = f"; {one.get('why', '')}"
                self.told.setdefault(one.get("version"), {})[one["event"]] = one
        return [told for told in self.told.values()
                if told.keys() >= {"capture_begin", "captured", "durable"}]

    def measured(self, setting: sweep.Setting) -> sweep.Measured:
        counted = self.look()[1:]
        blocked = [max(rank["end_ns"] - rank["begin_ns"] for rank in told["captured"]["ranks"])
                   for told in counted]
        durable = [told["durable"]["t_ns"] - told["capture_begin"]["t_ns"] for told in counted]
        return sweep.Measured(
            setting, self.ranks, len(counted),
            statistics.median(told["captured"]["bytes"] for told in counted),
            statistics.median(blocked) / 1e9, max(statistics.median(durable), 1) / 1e9)


def _why(versions: Versions, ended: str, output: pathlib.Path) -> str:
    """The reason for too few versions, and the program's last lines."""
    hint = "" if versions.ranks else "; did a rank call Backstay?"
    said = output.read_text(errors="replace").splitlines()[-LAST_LINES:]
    return "\n    ".join([f"{len(versions.look())} of at least 2 versions, {ended}"
                          f"{versions.failed}{hint}", *map(printable, said)])


def _measure(options: Options, setting: sweep.Setting, number: int) -> sweep.Measured:
    """Runs the command once. Raises TrialError; what the program wrote is gone in any case."""
    job = f"tune-{os.getpid()}-{number}"
    versions, deadline = Versions(options.folder / job), time.monotonic() + options.timeout_s
    with tempfile.TemporaryDirectory(prefix="backstay-", ignore_cleanup_errors=True) as storage:
        output, ended = pathlib.Path(storage) / "output", f"no more within {options.timeout_s:g} s"
        with output.open("wb") as out:
            process = subprocess.Popen(options.command, stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=out, start_new_session=True,
                                       env=_environment(options, setting, job, storage))
        try:
            while len(versions.look()) < options.versions and time.monotonic() < deadline:
                if options.signals:
                    raise CommandError(PATH, "stopped; what was written is removed",
                                       128 + options.signals[0], "again")
                if process.poll() is not None:
                    ended = f"the program ended with code {process.returncode}"
                    break
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(LOOK_S)
            if len(versions.look()) < 2:
                raise TrialError(_why(versions, ended, output))
            return versions.measured(setting)
        finally:
            _end(process, job)
            shutil.rmtree(versions.folder, ignore_errors=True)
            if versions.folder.exists():
                say(f"{PATH}: {versions.folder} could not be removed")


def _sweep(options: Options, only) -> tuple[list[sweep.Measured], dict]:
    """All rounds: what was measured, and why other settings could not be."""
    done, failed, at_most, waiting = [], {}, "", sweep.settings(2, only)[:1]
    rounds = [lambda: sweep.settings(done[0].ranks, only), lambda: sweep.shared_file(done),
              lambda: sweep.finer(done)]
    while waiting or rounds:
        tried = {*failed, *(one.setting for one in done)}
        if not waiting:
            waiting = [one for one in rounds.pop(0)() if one not in tried]
            continue
        setting, number = waiting.pop(0), len(tried) + 1
        try:
            done.append(found := _measure(options, setting, number))
            at_most = f" of at most {len(sweep.settings(found.ranks, only)) + sweep.LATER}"
            said = (f"blocked {found.blocked_s:.4g} s, {found.bytes_per_s / 1e9:.4g} GB/s until "
                    "durable")
        except TrialError as error:
            failed[setting], said = str(error), f"left out: {error}"
            if not done:
                raise CommandError(PATH, f"{setting}: {error}", 1, "io") from None
        say(f"{number}{at_most}: {setting}: {said}")
    return done, failed


def _ranks_of(command: list[str]) -> int:
    """What -n or -np of the launcher says."""
    for option, value in zip(command, command[1:], strict=False):
        if option in ("-n", "-np", "--np", "--ntasks") and value.isdigit() and int(value):
            return int(value)
    raise CommandError(PATH, "--dry-run finds no number of ranks (-n N) in the command")


def _check(options: Options, only: list[str], figure: pathlib.Path | None) -> None:
    folder, program = options.folder, (options.command or [""])[0]
    for wrong, message, *code in (
            (not program, "there is no command; it follows --, as in -- mpirun -n 4 ./solver"),
            (not folder.is_dir(), f"{folder}: no such folder", 3, "not_found"),
            (not os.access(folder, os.W_OK | os.X_OK), f"{folder}: cannot be written to", 1, "io"),
            (shutil.which(program) is None, f"{program}: no such program", 127, "not_found"),
            (not {*only} <= {*sweep.NAMES}, f"--only: there are {', '.join(sweep.NAMES)}"),
            (figure and figure.suffix not in (".png", ".svg"),
             f"--figure {figure}: its name must end in .png or .svg")):
        if wrong:
            raise CommandError(PATH, message, *code)


def _show(options: Options, done: list, failed: dict, figure, as_json: bool) -> None:
    found = sweep.best(done)
    fragment = sweep.toml(str(options.folder.resolve()), found.setting)
    if as_json:
        rows = [{**one.setting._asdict(), **one._asdict(), "setting": str(one.setting),
                 "bytes_per_s": one.bytes_per_s} for one in done]
        print(json.dumps({"settings": rows, "best": str(found.setting), "toml": fragment,
                          "failed": {str(one): why for one, why in failed.items()},
                          "figure": figure and str(figure)}, indent=2))
        return
    width = max(len(str(one.setting)) for one in done)
    table = [f"# {'setting':<{width}}  {'files':>6}  {'blocked s':>9}  {'GB/s':>9}"]
    table += [f"# {one.setting!s:<{width}}  {one.setting.files_of(one.ranks):>6}  "
              f"{one.blocked_s:>9.4g}  {one.bytes_per_s / 1e9:>9.4g}"
              f"{'  best' if one is found else ''}" for one in done]
    about = f"# {found.ranks} ranks, {found.bytes / 1e6:.4g} MB a version"
    print("\n".join([about, *table, fragment]), end="")


def command(
    folder: Annotated[pathlib.Path, typer.Argument(metavar="DIR", help="On shared storage")],
    words: Annotated[Optional[list[str]], typer.Argument(metavar="-- COMMAND")] = None,
    versions: Annotated[int, typer.Option("--versions", min=2, metavar="N",
                                          help="Of each setting; the first does not count")] = 5,
    timeout_s: Annotated[float, typer.Option("--timeout", min=1, metavar="S",
                                             help="The longest that a setting takes")] = 120,
    only: Annotated[Optional[list[str]],
                    typer.Option("--only", metavar="STRATEGY", help="May be repeated")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the settings, run none")] = False,
    figure: Annotated[Optional[pathlib.Path], typer.Option(
        "--figure", metavar="FILE", help="Draw bandwidth by files (.png, .svg)")] = None,
    config: Annotated[Optional[str], typer.Option("--config", help="Configuration file")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON")] = False,
) -> None:
    """Run a program with one strategy after the other, and say which suits it.

    Strategies are for places where no agent runs: the ranks write versions into DIR by themselves.
    Each setting runs COMMAND until it has written a few versions, ends it and removes them. The
    output is a configuration with the setting that blocked the program least.
    """
    if config is not None:
        os.environ["BACKSTAY_CONFIG"] = os.path.abspath(config)
    only = only or list(sweep.NAMES)
    options = Options(folder.absolute(), words or [], versions, timeout_s, [])
    _check(options, only, figure)
    if dry_run:
        print("\n".join(map(str, sweep.settings(_ranks_of(options.command), only))))
        return
    if figure is not None:
        with needs("matplotlib", PATH):
            from ..plan import figures
            from ..plan.figures.sweep import files_and_bandwidth
    for number in SIGNALS:
        signal.signal(number, lambda came, _: options.signals.append(came))
    done, failed = _sweep(options, only)
    if figure is not None:
        figures.save(files_and_bandwidth(done), figure)
    _show(options, done, failed, figure, as_json)
