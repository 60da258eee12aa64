"""`backstay plan aggregation`: many small writes or few large ones."""

import csv
import math
from typing import Annotated, Optional

import numpy as np
import typer

from ...plan import aggregation, files
from ...plan.check import PlanError, positive, whole
from ...plan.words import counted, grouped
from .. import measured
from ..usage import CommandError
from . import output
from .output import AsJson, seconds, sized

EPILOG = (
    "\b\nExamples:\n"
    "  backstay plan aggregation --profile lu.C.64 --json\n"
    "  backstay plan aggregation --profile bt.C.64 --pool 512e6 --disk-bandwidth 2e9 "
    "--request-time 1e-4\n"
    "  backstay plan aggregation --histogram writes.csv --processes 64      (columns "
    "size_bytes,count)\n"
    "  backstay plan aggregation --job lj --checkpoints 10\n\n"
    f"{output.EXIT_CODES}"
)

PATH = "backstay plan aggregation"
_COLUMNS = ["size_bytes", "count"]


def _cell(where: str, column: str, text: str, least: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= least):
        raise PlanError("histogram_file",
                        f"{where}: {column} must be a number, at least {least:g}, not {text!r}")
    return value


def read_histogram(path: str) -> aggregation.Histogram:
    """A CSV file of writes. Raises PlanError naming line and column."""
    try:
        rows = list(csv.reader(files.read_text(path).splitlines()))
    except (UnicodeDecodeError, csv.Error):
        raise PlanError("histogram_file", f"{path}: not a CSV file in UTF-8") from None
    if not rows or [cell.strip() for cell in rows[0]] != _COLUMNS:
        raise PlanError("histogram_file", f"{path}:1: the first line must be {','.join(_COLUMNS)}")
    sizes, counts = [], []
    for number, row in enumerate(rows[1:], 2):
        if not row:
            continue
        if len(row) != 2:
            raise PlanError("histogram_file",
                            f"{path}:{number}: {counted(len(row), 'column')}; there must be 2")
        sizes.append(_cell(f"{path}:{number}", "size_bytes", row[0], 1))
        counts.append(_cell(f"{path}:{number}", "count", row[1], 0))
    if not sum(counts):
        raise PlanError("histogram_file", f"{path}: holds no write")
    return aggregation.Histogram(np.array(sizes), np.array(counts))


def counted_writes(job: str, directory: Optional[str], checkpoints: float
                   ) -> aggregation.Histogram:  # fmt: skip
    """What all processes of a job here wrote into captured files, for each of so many checkpoints.

    Raises CommandError where its logs have none.
    """
    profile, _ = measured.files_profile(PATH, job, directory)
    sizes = [] if profile is None else [one for one in profile.sizes if one.bytes > 0]
    if not sizes:
        raise CommandError(PATH, f"no captured files of job {job} under "
                                 f"{measured.chosen_folder(directory)} have been written; "
                                 f"`backstay ls` lists what there is", 3, "not_found")
    return aggregation.Histogram(np.array([one.bytes / one.writes for one in sizes]),
                                 np.array([one.writes / checkpoints for one in sizes]))


def histogram_of(profile, histogram_file, job, directory, checkpoints) -> aggregation.Histogram:
    if sum(one is not None for one in (profile, histogram_file, job)) != 1:
        raise PlanError("profile", "or --histogram or --job must be given, one of them")
    if job is not None:
        return counted_writes(job, directory, 1 if checkpoints is None
                              else positive("checkpoints", checkpoints))
    if checkpoints is not None:
        raise PlanError("checkpoints", "counts with --job only")
    if profile is None:
        return read_histogram(histogram_file)
    if profile not in aggregation.PROFILES:
        raise PlanError("profile",
                        f"must be one of {', '.join(aggregation.PROFILES)}, not {profile!r}")
    return aggregation.PROFILES[profile]


def speed_up(result) -> str:
    on_disk, perceived = (output.number(result[f"{what}_speedup"], 3) for what
                          in ("disk", "blocked"))
    return f"{on_disk} × on disk, {perceived} × perceived"


def command(
    profile: Annotated[
        Optional[str], typer.Option("--profile", metavar="NAME", help="lu.C.64, bt.C.64 or sp.C.64")
    ] = None,
    histogram_file: Annotated[
        Optional[str],
        typer.Option("--histogram", metavar="FILE", help="CSV of one process's writes instead")
    ] = None,
    job: Annotated[
        Optional[str],
        typer.Option("--job", metavar="JOB", help="What this job wrote into captured files here")
    ] = None,
    directory: Annotated[
        Optional[str],
        typer.Option("--dir", help="With --job: folder of the versions (storage.dir)")
    ] = None,
    checkpoints: Annotated[
        Optional[float],
        typer.Option("--checkpoints", metavar="N", help="With --job: how many it wrote; default 1")
    ] = None,
    processes: Annotated[
        Optional[int],
        typer.Option("--processes", parser=output.whole_number, metavar="N",
                     help=f"Of one node; default {aggregation.PROCESSES}")
    ] = None,
    pool_bytes: Annotated[float,
                          typer.Option("--pool", metavar="BYTES", help="The buffer pool")] = 64
                          * 2**20,
    buffer_bytes: Annotated[float,
                            typer.Option("--buffer", metavar="BYTES", help="One buffer of it")] = 4
                            * 2**20,
    disk_bytes_per_s: Annotated[
        float, typer.Option("--disk-bandwidth", metavar="B/S", help="Of large writes")
    ] = aggregation.DISK_BYTES_PER_S,
    request_s: Annotated[
        float, typer.Option("--request-time", metavar="S", help="Of a request, besides its bytes")
    ] = aggregation.REQUEST_S,
    copy_bytes_per_s: Annotated[float,
                                typer.Option("--copy-bandwidth", metavar="B/S",
                                             help="Into the pool")] = 2e9,
    merge_below_bytes: Annotated[
        float, typer.Option("--merge-below", metavar="BYTES", help="Smaller writes ride along in "
                                                                   "the page cache")
    ] = aggregation.PAGE_BYTES,
    as_json: AsJson = False,
) -> None:
    """What a buffer pool does for the disk.

    Number and size of disk requests and the time of a node's checkpoint with and without the pool,
    from a histogram of the writes (paper 003; the pool as in paper 000, eq. 4.1). The defaults are
    the machine of the slides.
    """
    writes = histogram_of(profile, histogram_file, job, directory, checkpoints)
    if job is not None and processes is not None:
        raise PlanError("processes", "the log has the writes of all processes of the node")
    by_default = 1 if job is not None else aggregation.PROCESSES
    n = whole("processes", by_default if processes is None else processes)
    if positive("buffer_bytes", buffer_bytes) > positive("pool_bytes", pool_bytes):
        raise PlanError("buffer_bytes", "must not be larger than --pool")
    plain = aggregation.without_pool(writes, n, disk_bytes_per_s, request_s, merge_below_bytes)
    pooled = aggregation.with_pool(writes, n, disk_bytes_per_s, request_s, buffer_bytes)
    blocked = aggregation.blocked_s(writes, n, pool_bytes,
                                    positive("copy_bytes_per_s", copy_bytes_per_s), pooled)
    data = aggregation.total_bytes(writes, n)
    result = {
        "data_bytes": data,
        "without_pool": {**plain._asdict(), "blocked_s": plain.disk_s},
        "with_pool": {**pooled._asdict(), "blocked_s": blocked,
                      "background_s": max(0.0, pooled.disk_s - blocked)},
        "disk_speedup": plain.disk_s / pooled.disk_s,
        "blocked_speedup": plain.disk_s / blocked,
    }
    lines = [
        ("checkpoint of the node", sized(data)),
        ("without: requests", f"{grouped(round(plain.requests))} of {sized(plain.mean_bytes)}"),
        ("without: program waits", seconds(plain.disk_s)),
        ("with: requests", f"{grouped(round(pooled.requests))} of {sized(pooled.mean_bytes)}"),
        ("with: disk busy", seconds(pooled.disk_s)),
        ("with: program waits", seconds(blocked)),
        (
            "speed-up",
            speed_up(result),
        ),
    ]
    output.show(result, lines, as_json)
