"""`backstay report`: a job's event log as one page that opens offline."""

import json
import pathlib
from typing import Annotated, Optional

import typer

from ..plan import files
from ..plan.check import PlanError
from ..report import as_data, captured_files, files_page, times
from . import measured
from .pictures import needs, write_page
from .usage import CommandError, say

EPILOG = """\b
Examples:
  backstay report lj -o report.html
  backstay report lj --log logs       all nodes of a job, whose logs were copied to one folder
  backstay report lj --dir /scratch/versions --mtti 86400

Exit codes: 0 ok, 1 could not be read or written, 2 wrong usage or another job's log, 3 no such job,
log or version."""
PATH = "backstay report"


def probe_rates() -> Optional[dict]:
    """Memory and disk of this machine in B/s, and `how` that was measured; None if `backstay probe`
    never did.
    """
    try:
        return {**measured.probe_rates(measured.probe_path()),
                "how": measured.probe_how(measured.probe_path())}
    except (OSError, ValueError):
        return None


def history_of(job, directory, log, mtti_s, may_miss: bool):
    """The job's history, where its time went, and lines that cannot be read. `may_miss`: None, None
    and none where no version of it was captured but those of files.
    """
    try:
        made, unreadable = measured.job_history(PATH, job, directory, log)
    except CommandError as error:
        if not may_miss or error.exit_code != 3 or log:
            raise
        return None, None, []
    try:
        return made, times.account(made, mtti_s), unreadable
    except PlanError as error:
        raise CommandError(PATH, f"--mtti {error.reason}") from None


def command(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Name of the job")],
    output: Annotated[pathlib.Path,
                      typer.Option("-o", "--output", metavar="FILE",
                                   help="The page")] = pathlib.Path("report.html"),
    mtti_s: Annotated[
        Optional[float],
        typer.Option("--mtti", metavar="S", help="Mean time to interrupt; default: as observed")
    ] = None,
    directory: Annotated[Optional[str],
                         typer.Option("--dir", help="Folder of the versions (storage.dir)")] = None,
    log: Annotated[
        Optional[list[pathlib.Path]],
        typer.Option("--log", metavar="PATH",
                     help="Another node's log, or a folder of logs; may be repeated"),
    ] = None,
    config: Annotated[Optional[str], typer.Option("--config", help="Configuration file")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON")] = False,
) -> None:
    """Draw what happened to a job: versions, times, ranks, bandwidth, failures, how its nodes
    differ, and what its programs wrote into captured files.

    Reads the job's event log here and those named with --log; writes one page that opens in any
    browser, offline.
    """
    del config  # `backstay` has read it and set BACKSTAY_DIR
    profile, unreadable = measured.files_profile(PATH, job, directory)
    made, spent, lines = history_of(job, directory, log, mtti_s, profile is not None)
    unreadable = lines + unreadable
    with needs("plotly", PATH):
        from ..report import page
    try:
        write_page(output, page.render(made, spent, probe_rates(), unreadable, profile, job))
    except files.WriteError as error:
        raise CommandError(PATH, str(error), exit_code=1, code="io") from error
    for one in unreadable:
        say(f"{PATH}: left out: {one}")
    written = None if profile is None else captured_files.as_data(profile)
    if as_json:
        result = {"job": job, "file": str(output), "versions": len(made.captured) if made else 0,
                  "failures": len(made.failures) if made else 0,
                  "restarts": len(made.restarts) if made else 0,
                  "unreadable_lines": len(unreadable), "measured": spent and spent.measured,
                  "expected": spent and spent.expected, "captured_files": written,
                  **(as_data.of(made) if made else {})}  # fmt: skip
        print(json.dumps(result, indent=2))
    else:
        print("\n".join([str(output), *([] if profile is None else files_page.lines(profile))]))
