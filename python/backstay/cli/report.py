"""`backstay report`: a job's event log as one page that opens offline."""

import json
import os
import pathlib
import re
import sys
from typing import Annotated, Optional

import typer

from ..plan.check import PlanError
from ..report import events, history, times
from .pictures import needs, write_page
from .usage import CommandError

EPILOG = (
    "Examples: `backstay report lj -o report.html`; `backstay report lj --dir /scratch/versions --mtti 86400`. "
    "Exit codes: 0 ok, 1 could not be read or written, 2 wrong usage, 3 no such job, log or version."
)
PATH = "backstay report"


def job_folder(job: str, directory: Optional[str]) -> pathlib.Path:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", job):
        raise typer.BadParameter(f"{job!r} is no name of a job")
    chosen = directory or os.environ.get("BACKSTAY_DIR") or f"/var/tmp/backstay-{os.environ.get('USER', 'root')}"
    folder = pathlib.Path(chosen) / job
    if not folder.is_dir():
        raise CommandError(PATH, f"no job {job} under {chosen}; `backstay ls` lists what there is", 3, "not_found")
    return folder


def probe_rates() -> Optional[dict]:
    """Memory and disk of this machine in B/s as `backstay probe` measured them; None if it did not."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    try:
        found = json.loads(pathlib.Path(cache, "backstay", "probe.json").read_text("utf-8"))
        rates = {"memory": found["memory"]["copy_bytes_per_s"], "disk": found["disk"]["write_bytes_per_s"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    good = all(isinstance(one, int | float) and 0 < one < 1e20 for one in rates.values())
    return {name: float(one) for name, one in rates.items()} if good else None


def read_history(folder: pathlib.Path, job: str):
    try:
        log = events.read(folder)
    except events.LogError as error:
        found = (3, "not_found") if error.missing else (1, "format")
        raise CommandError(PATH, str(error), *found) from None
    made = history.build(job, log.events)
    if not made.captured:
        raise CommandError(PATH, f"{folder}: the log tells of no captured version; there is nothing to draw", 3, "not_found")
    return made, log.unreadable


def command(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Name of the job")],
    output: Annotated[pathlib.Path, typer.Option("-o", "--output", metavar="FILE")] = pathlib.Path("report.html"),
    mtti_s: Annotated[
        Optional[float], typer.Option("--mtti", metavar="S", help="Mean time to interrupt; default: as observed")
    ] = None,
    directory: Annotated[Optional[str], typer.Option("--dir", help="Folder of the versions (storage.dir)")] = None,
    config: Annotated[Optional[str], typer.Option("--config", help="Configuration file")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON")] = False,
) -> None:
    """Draw what happened to a job: versions, times, ranks, bandwidth, failures.

    Reads the job's event log; writes one page that opens in any browser, offline.
    """
    del config  # `backstay` has read it and set BACKSTAY_DIR
    made, unreadable = read_history(job_folder(job, directory), job)
    try:
        spent = times.account(made, mtti_s)
    except PlanError as error:
        raise CommandError(PATH, f"--mtti {error.reason}") from None
    with needs("plotly", PATH):
        from ..report import page
    write_page(output, page.render(made, spent, probe_rates(), unreadable))
    for one in unreadable:
        print(f"{PATH}: left out: {one}", file=sys.stderr)
    if as_json:
        result = {"job": job, "file": str(output), "versions": len(made.captured), "failures": len(made.failures),
                  "restarts": len(made.restarts), "unreadable_lines": len(unreadable), "measured": spent.measured,
                  "expected": spent.expected}  # fmt: skip
        print(json.dumps(result, indent=2))
    else:
        print(output)
