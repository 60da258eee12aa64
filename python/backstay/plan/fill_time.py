"""The Checkpoint-Fill-Time Law: time of a full dump from four numbers. Paper 001, § III-D and Table
I.
"""

import numpy as np

from .check import PlanError, positive

OBSERVED_FACTOR = 10.0  # § IV-B: measured against ideal, on Stampede


def fill_time_s(device_bytes, device_bytes_per_s):
    """Time in s to fill one device: its size in B over its bandwidth in B/s."""
    return (positive("device_bytes", device_bytes) / positive("device_bytes_per_s",
        device_bytes_per_s))[()]


def ideal_checkpoint_s(ram_bytes, storage_bytes, device_bytes, device_bytes_per_s,
                       checkpoint_bytes=None):
    """t = (RAM / storage) × (device size / device bandwidth) in s. Paper 001, § III-D.

    All in B and B/s; `checkpoint_bytes` takes the place of the RAM if less is saved. Raises
    PlanError for values not above 0 and for a checkpoint larger than the RAM.
    """
    ram = positive("ram_bytes", ram_bytes)
    saved = ram if checkpoint_bytes is None else positive("checkpoint_bytes", checkpoint_bytes)
    if np.any(saved > ram):
        raise PlanError("checkpoint_bytes", "must not be larger than the memory")
    return (saved / positive("storage_bytes", storage_bytes) * fill_time_s(device_bytes,
        device_bytes_per_s))[()]


def expected_checkpoint_s(ideal_s, observed_factor=OBSERVED_FACTOR):
    """What to expect: the ideal time in s times the factor that was observed."""
    return (positive("ideal_s", ideal_s) * positive("observed_factor", observed_factor))[()]
