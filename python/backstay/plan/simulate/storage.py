"""Writing played through piece by piece: devices of a storage system, writer groups, a node's
buffer pool.

Each function follows single chunks, writes or steps and uses no formula of the model that it is
held against.
"""

import heapq

import numpy as np

from ..aggregation import PAGE_BYTES
from .staging import Staging, by_chunks


def fill_devices(ram_bytes, storage_bytes, device_bytes, device_bytes_per_s, pieces, rng) -> float:
    """Seconds until `pieces` pieces of uneven size are on the devices, each going to the first
    device that is free.
    """
    sizes = rng.uniform(0.5, 1.5, pieces)
    sizes *= ram_bytes / sizes.sum()
    free = [0.0] * round(storage_bytes / device_bytes)
    for size in sizes:
        heapq.heapreplace(free, free[0] + size / device_bytes_per_s)
    return max(free)


def grouped_blocked_s(processes, writers, file_bytes, writer_bytes_per_s, perceived_bytes_per_s,
                      between_s, rng,
                      jitter=0.2) -> float:  # fmt: skip
    """Processor-seconds that one step of a run with writer groups blocks.

    A worker computes for `between_s`, more or less by `jitter`, waits until its writer has finished
    the step before, and hands over; then the writer writes.
    """
    writing, handing = file_bytes / writer_bytes_per_s, file_bytes / perceived_bytes_per_s
    now, writer_free, waited = 0.0, 0.0, []
    for _ in range(200):
        ready = now + between_s * rng.uniform(1 - jitter, 1 + jitter)
        begun = max(ready, writer_free)
        now = begun + handing
        writer_free = now + writing
        waited.append(now - ready)
    return (processes - writers) * float(np.mean(waited[1:])) + writers * writing


def writes_of_node(histogram, processes, rng) -> np.ndarray:
    """Sizes of all writes of a node's processes, in the order in which they happen to come."""
    counts = np.maximum(1, np.round(np.asarray(histogram.counts) * processes)).astype(int)
    writes = np.repeat(np.asarray(histogram.sizes, dtype=float), counts)
    return rng.permutation(writes)


def requests_without_pool(writes) -> int:
    """Disk requests if only writes below a page wait for the next one."""
    requests, waiting = 0, 0.0
    for size in writes:
        waiting += size
        if size >= PAGE_BYTES:
            requests, waiting = requests + 1, 0.0
    return requests + (waiting > 0)


def requests_with_pool(writes, buffer_bytes) -> int:
    """Disk requests if writes fill shared buffers, and full ones go to the disk."""
    requests, room = 0, float(buffer_bytes)
    for size in writes:
        while size >= room:
            size, room, requests = size - room, float(buffer_bytes), requests + 1
        room -= size
    return requests + (room < buffer_bytes)


def pool_blocked_s(data_bytes, pool_bytes, buffer_bytes, copy_bytes_per_s,
                   disk_bytes_per_s) -> float:
    """How long the program waits: buffer by buffer, a pool whose buffers are free when they are on
    the disk.
    """
    return by_chunks(Staging(data_bytes, pool_bytes, copy_bytes_per_s, disk_bytes_per_s),
                     buffer_bytes)[0]
