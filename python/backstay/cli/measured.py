"""What was measured here: `backstay probe`'s last result, and a job's event log."""

import json
import os
import pathlib
import re

import typer

from ..plan import files
from ..report import captured_files, events, history, logs
from .usage import CommandError

PROBED = {"copy_bytes_per_s": ("memory", "copy_bytes_per_s"),
          "disk_bytes_per_s": ("disk", "write_bytes_per_s")}


def probe_path() -> pathlib.Path:
    """The file in which `backstay probe` keeps its result."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME")
                        or pathlib.Path.home() / ".cache") / "backstay" / "probe.json"


def probe_rates(file: pathlib.Path) -> dict[str, float]:
    """Memory copy and disk write in B/s. OSError if the file cannot be read, ValueError if it is no
    such result.

    The probe's network is this machine's loopback: it says nothing about the wire between nodes.
    """
    try:
        found = json.loads(files.read_text(file))
        rates = {name: found[part][key] for name, (part, key) in PROBED.items()}
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if not all(isinstance(one, int | float) and 0 < one < 1e20 for one in rates.values()):
        raise ValueError("bandwidths must be above 0")
    return {name: float(one) for name, one in rates.items()}


def probe_how(file: pathlib.Path) -> dict:
    """What `backstay probe` did, and the load of the machine before it; {} where an older one did
    not say. Errors as probe_rates().
    """
    found = json.loads(files.read_text(file))
    try:
        parts = {**found["memory"], **found["disk"], "cores": found["cores"],
                 **({"load": found["load"]} if "load" in found else {})}
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from None
    numbers = ("processes", "bytes_each", "bytes", "cores", "load")
    return {key: one for key,
            one in parts.items() if key in (*numbers, "direct") and isinstance(one, int | float)}


def chosen_folder(directory: str | None) -> pathlib.Path:
    """The folder of all jobs' versions."""
    return pathlib.Path(directory or os.environ.get("BACKSTAY_DIR")
                        or f"/var/tmp/backstay-{os.environ.get('USER', 'root')}")


def job_folder(path: str, job: str, directory: str | None,
               needed: bool = True) -> pathlib.Path | None:
    """The job's folder. `path`: the command, for the message. None if it is not there and not
    `needed`.
    """
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", job):
        raise typer.BadParameter(f"{job!r} is no name of a job")
    chosen = chosen_folder(directory)
    folder = chosen / job
    if folder.is_dir():
        return folder
    if needed:
        raise CommandError(path, f"no job {job} under {chosen}; `backstay ls` lists what there is",
                           3, "not_found")
    return None


def _failed(path: str, error: logs.LogError) -> CommandError:
    if error.mismatch:
        return CommandError(path, str(error), 2, "mismatch")
    return CommandError(path, str(error), *((3, "not_found") if error.missing else (1, "format")))


def job_history(
    path: str, job: str, directory: str | None, more: list[pathlib.Path] | None = None
) -> tuple[history.History, list[str]]:
    """The job's history with at least one captured version, and the lines of its logs that cannot
    be read.

    `more`: logs of other nodes; with them there need be none in the job's folder.
    """
    folder = job_folder(path, job, directory, needed=not more)
    if more and folder is not None and not logs.has_log(folder):
        folder = None
    try:
        log = events.read(folder, job, more)
    except logs.LogError as error:
        raise _failed(path, error) from None
    made = history.build(job, log.events)
    if not made.captured:
        told = f"{folder}: the log has" if not more else "the logs have"
        raise CommandError(path, f"{told} no captured version; there is nothing to use", 3,
                           "not_found")
    return made, log.unreadable


def files_profile(
    path: str, job: str, directory: str | None
) -> tuple[captured_files.Profile | None, list[str]]:
    """What the programs of a job wrote into captured files on this node, by the logs of JOB and of
    JOB.files.HOST, and the lines of these logs that cannot be read; None where nothing was.
    """
    folder = job_folder(path, job, directory, needed=False)
    own = [folder] if ".files." in job else []
    all_events, unreadable = [], []
    for folder in [*own, *sorted(chosen_folder(directory).glob(f"{job}.files.*"))]:
        if folder is None or not logs.has_log(folder):
            continue
        try:
            log = events.read(folder)
        except logs.LogError as error:
            unreadable.append(str(error))
            continue
        all_events += log.events
        unreadable += log.unreadable if folder not in own else []
    return captured_files.of(sorted(all_events, key=lambda event: event["t_ns"])), unreadable
