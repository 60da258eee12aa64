"""Staging memory that fills at network speed and drains at storage speed: as a fluid, and chunk by
chunk.
"""

from typing import NamedTuple

import numpy as np

from ..check import PlanError, positive


class Staging(NamedTuple):
    """A checkpoint's `startup_s` before data flows and `data_bytes` in all; the memory's size and
    both speeds.
    """

    data_bytes: float
    memory_bytes: float
    network_bytes_per_s: float
    storage_bytes_per_s: float
    startup_s: float = 0.0


def checked(staging: Staging) -> Staging:
    """The same, or PlanError for what is not above 0."""
    for name in ("data_bytes", "memory_bytes", "network_bytes_per_s", "storage_bytes_per_s"):
        positive(name, getattr(staging, name))
    return staging


def drained(staging: Staging, held_bytes, time_s):
    """What is left of `held_bytes` after `time_s` without new data."""
    return np.maximum(0.0, held_bytes - staging.storage_bytes_per_s * time_s)


def absorb(staging: Staging, held_bytes):
    """(seconds until the checkpoint is handed over, bytes held then), beginning with `held_bytes`.
    """
    held = drained(staging, np.asarray(held_bytes, dtype=float), staging.startup_s)
    fast, slow = staging.network_bytes_per_s, staging.storage_bytes_per_s
    if fast <= slow:
        return staging.startup_s + staging.data_bytes / fast, np.zeros_like(held)
    until_full = (staging.memory_bytes - held) / (fast - slow)
    at_once = np.minimum(staging.data_bytes, until_full * fast)
    rest = staging.data_bytes - at_once
    time = staging.startup_s + at_once / fast + rest / slow
    return time, held + at_once * (1 - slow / fast)


def by_chunks(staging: Staging, chunk_bytes: float, pauses_s=()) -> list[float]:
    """Seconds that each of several checkpoints takes, chunk by chunk; `pauses_s` of computing lie
    between them.

    A chunk is sent when a place in the memory is free, written when it and the storage are there,
    and its place is free when it is written. No formula of the fluid is used.
    """
    places = int(checked(staging).memory_bytes // chunk_bytes)
    if places < 1:
        raise PlanError("chunk_bytes", "must fit into the memory")
    send, write = chunk_bytes / staging.network_bytes_per_s, chunk_bytes / staging.storage_bytes_per_s
    chunks = max(1, round(staging.data_bytes / chunk_bytes))
    written, took, now, disk_free = [], [], 0.0, 0.0
    for pause in (0.0, *pauses_s):
        begin = now + pause
        now = begin + staging.startup_s
        for _ in range(chunks):
            free = written[len(written) - places] if len(written) >= places else 0.0
            now = max(now, free) + send
            disk_free = max(disk_free, now) + write
            written.append(disk_free)
        took.append(now - begin)
    return took
