"""Measured creates, as `bench/creates --json` prints them (paper 000, Figs. 3.1 and 4.2).
docs/plan/latency.md.

Raise PlanError for a file that is no such result.
"""

import json
import math
from typing import NamedTuple

import numpy as np

from . import files
from .check import PlanError, count
from .latency import direct_latency_s


class Creates(NamedTuple):
    """Files and objects that `processes` processes make a second, all together, and what they write
    a second, in B/s, each `mib` MiB into a file or an object of its own. `synced`: until all are on
    the disk. `disk_bytes_per_s`: one large file past the page cache.
    """

    processes: int
    files_per_s: float
    files_synced_per_s: float
    streams_per_s: float
    streams_synced_per_s: float
    mib: float
    own_file_bytes_synced_per_s: float
    stream_bytes_synced_per_s: float
    disk_bytes_per_s: float


def read(path) -> Creates:
    """A result of bench/creates."""
    try:
        found = json.loads(files.read_text(path))
        values = [found[name] for name in Creates._fields]
        is_one = found["benchmark"] == "creates"
    except (ValueError, KeyError, TypeError, RecursionError):
        is_one, values = False, []
    numbers = [one for one in values if isinstance(one, int | float) and not isinstance(one, bool)]
    if not is_one or len(numbers) != len(Creates._fields) or not all(
            math.isfinite(one) and one > 0 for one in numbers):
        raise PlanError("creates", f"{path}: not what `bench/creates --json` prints")
    return Creates(*values)


def startup_s(processors, measured: Creates, method: str):
    """α_c in s: each of n processors makes one object, or with pfs one file, as fast as all were
    made there.
    """
    rate = measured.files_per_s if method == "pfs" else measured.streams_per_s
    return np.asarray(count("processors", processors) / rate)[()]


def modelled_bytes_per_s(measured: Creates) -> float:
    """n d / δ in B/s of a file per process: eq. 3.3 with the measured creates and disk, and no
    network.
    """
    processes, each = measured.processes, measured.mib * 2**20
    latency_s = direct_latency_s(processes, each, math.inf, math.inf, measured.disk_bytes_per_s,
                                 startup_s(processes, measured, "pfs"))
    return float(processes * each / latency_s)
