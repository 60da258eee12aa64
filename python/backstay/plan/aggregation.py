"""Disk requests and time of a node's checkpoint with and without a buffer pool.
docs/plan/aggregation.md.

Profile: paper 003 (slides). Sizes in B, bandwidths in B/s, times in s. A histogram is two arrays,
sizes of writes and how many of each one process makes. Raise PlanError for values out of range.
"""

from typing import NamedTuple

import numpy as np

from .check import PlanError, count, not_negative, positive
from .latency import burst_s

PAGE_BYTES = 4096  # the slides' smallest class; what the page cache collects
DISK_BYTES_PER_S = 60e6  # "Disk raw bandwidth = 60MB/s"
REQUEST_S = 1.4e-3  # request_s_from_shares() of the slide's LU.C.64
PROCESSES = 8  # a node of the slides


class Histogram(NamedTuple):
    sizes: np.ndarray
    counts: np.ndarray


def _shaped(writes: float, total_bytes: float) -> Histogram:
    """LU.C.64's shape: shares of writes 60, 38 and 0.8 %, of data 1.5, 20 and 79 %."""
    counts = writes * np.array([0.60, 0.38, 0.008])
    return Histogram(total_bytes * np.array([0.015, 0.20, 0.79]) / counts, counts)


# Writes and bytes of one process (slide "Basic Checkpoint Information").
PROFILES = {"lu.C.64": _shaped(975, 23e6), "bt.C.64": _shaped(1057, 40e6),
            "sp.C.64": _shaped(1156, 39.5e6)}


class Requests(NamedTuple):
    """Expected requests to the disk, their mean size in B, and the time that the disk takes, in s.
    """

    requests: float
    mean_bytes: float
    disk_s: float


def total_bytes(histogram: Histogram, processes: int = PROCESSES) -> float:
    """D: bytes of all processes of a node."""
    sizes, counts = positive("sizes", histogram.sizes), not_negative("counts", histogram.counts)
    if sizes.shape != counts.shape or not counts.sum() > 0:
        raise PlanError("histogram", "must hold at least one write, and a count for each size")
    return float((sizes * counts).sum() * count("processes", processes))


def _on_disk(requests, data, request_s, disk_bytes_per_s) -> Requests:
    time = requests * not_negative("request_s", request_s) + data / positive("disk_bytes_per_s",
        disk_bytes_per_s)
    return Requests(float(requests), float(data / requests), float(time))


def without_pool(histogram, processes=PROCESSES, disk_bytes_per_s=DISK_BYTES_PER_S,
                 request_s=REQUEST_S,
                 merge_below_bytes=PAGE_BYTES) -> Requests:  # fmt: skip
    """Each write of at least `merge_below_bytes` is a request; smaller ones ride along. The program
    waits.
    """
    data = total_bytes(histogram, processes)
    alone = np.asarray(histogram.sizes, dtype=float) >= not_negative("merge_below_bytes",
        merge_below_bytes)
    requests = max(1.0, float(np.asarray(histogram.counts, dtype=float)[alone].sum() * processes))
    return _on_disk(requests, data, request_s, disk_bytes_per_s)


def with_pool(histogram, processes=PROCESSES, disk_bytes_per_s=DISK_BYTES_PER_S,
              request_s=REQUEST_S,
              buffer_bytes=4 * 2**20) -> Requests:  # fmt: skip
    """Full buffers go to the disk: ⌈D / buffer⌉ requests."""
    data = total_bytes(histogram, processes)
    requests = np.ceil(data / positive("buffer_bytes", buffer_bytes))
    return _on_disk(requests, data, request_s, disk_bytes_per_s)


def blocked_s(histogram, processes, pool_bytes, copy_bytes_per_s, pooled: Requests) -> float:
    """How long the program waits with a pool: paper 000's eq. 4.1, the pool as staging memory, the
    disk as storage.
    """
    data = total_bytes(histogram, processes)
    return float(burst_s(data, positive("pool_bytes", pool_bytes), copy_bytes_per_s,
                         data / pooled.disk_s))


def request_s_from_shares(counts, data_bytes, time_shares, disk_bytes_per_s) -> float:
    """Time of a request, in s, that gives two classes of writes their measured shares of the time.

    `counts`, `data_bytes`, `time_shares`: one value a class. (c1 s + d1/B) / (c2 s + d2/B) = share1
    / share2, for s.
    """
    (c1, c2), (d1, d2), (t1, t2) = counts, data_bytes, time_shares
    ratio = t1 / t2
    return float((ratio * d2 - d1) / positive("disk_bytes_per_s", disk_bytes_per_s)
                 / (c1 - ratio * c2))
