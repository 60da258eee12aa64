"""Collective writing or writer groups: paper 004, eqs. 1 to 7. docs/plan/strategy.md has the
symbols.

Arguments: `processes` n_p, `writers` n_g; `file_bytes` S in B; bandwidths in B/s;
`blocked_fraction` λ from 0 to 1. Raise PlanError for values out of range and for more writers than
processes.
"""

import numpy as np

from .check import PlanError, count, fraction, not_negative, positive


def _groups(processes, writers):
    n_p, n_g = np.broadcast_arrays(count("processes", processes), count("writers", writers))
    if (n_g > n_p).any():
        raise PlanError("writers",
                        f"must be at most the number of processes ({n_p[n_g > n_p].flat[0]:.0f})")
    return n_p, n_g


def production_improvement(ratio_before, ratio_after, steps):
    """(ratio_before + n_c) / (ratio_after + n_c): how much sooner a production run ends. Eq. 1.

    A ratio is the time of a checkpoint over that of a computing step; `steps` n_c lie between two
    checkpoints.
    """
    between = positive("steps", steps)
    return (
        (not_negative("ratio_before", ratio_before) + between)
        / (not_negative("ratio_after", ratio_after) + between)
    )[()]


def collective_blocked_s(processes, file_bytes, collective_bytes_per_s):
    """T_coIO = n_p S / BW_coIO: processor-seconds for which a collective write blocks. Eq. 3."""
    size, rate = positive("file_bytes", file_bytes), positive("collective_bytes_per_s",
        collective_bytes_per_s)
    return (count("processes", processes) * size / rate)[()]


def writer_blocked_s(processes, writers, file_bytes, writer_bytes_per_s, perceived_bytes_per_s,
                     blocked_fraction=0.0):
    """T_rbIO = (n_p − n_g)(S/BW_p + λ S/BW_rbIO) + n_g S/BW_rbIO: the same with writer groups. Eq.
    4.
    """
    n_p, n_g = _groups(processes, writers)
    size = positive("file_bytes", file_bytes)
    writing = size / positive("writer_bytes_per_s", writer_bytes_per_s)
    handing = size / positive("perceived_bytes_per_s", perceived_bytes_per_s, infinite=True)
    return ((n_p - n_g) * (handing + fraction("blocked_fraction", blocked_fraction) * writing)
            + n_g * writing)[()]


def speedup(processes, writers, file_bytes, collective_bytes_per_s, writer_bytes_per_s,
            perceived_bytes_per_s,
            blocked_fraction=0.0):  # fmt: skip
    """T_coIO / T_rbIO. Eqs. 2 and 5."""
    blocked = writer_blocked_s(
        processes, writers, file_bytes, writer_bytes_per_s, perceived_bytes_per_s, blocked_fraction
    )
    return (collective_blocked_s(processes, file_bytes, collective_bytes_per_s) / blocked)[()]


def speedup_approximate(processes, writers, collective_bytes_per_s, writer_bytes_per_s,
                        blocked_fraction=0.0):
    """1 / ((λ + (n_g/n_p)(1 − λ)) BW_coIO/BW_rbIO): eq. 6, without the hand-over."""
    n_p, n_g = _groups(processes, writers)
    blocked = fraction("blocked_fraction", blocked_fraction)
    slower = positive("collective_bytes_per_s", collective_bytes_per_s) / positive(
        "writer_bytes_per_s", writer_bytes_per_s
    )
    return (1 / ((blocked + n_g / n_p * (1 - blocked)) * slower))[()]


def speedup_unblocked(processes, writers, collective_bytes_per_s, writer_bytes_per_s):
    """(n_p/n_g)(BW_rbIO/BW_coIO): eq. 7, the limit for λ = 0."""
    return speedup_approximate(processes, writers, collective_bytes_per_s, writer_bytes_per_s, 0.0)


def perceived_bytes_per_s(sent_bytes, longest_send_s):
    """BW_p: data handed over by all workers, in B, over the longest time that MPI_Isend took, in s
    (§ V-C1).
    """
    return (positive("sent_bytes", sent_bytes) / positive("longest_send_s", longest_send_s))[()]


def blocked_fraction_from_steps(file_bytes, writer_bytes_per_s, between_s):
    """λ: the share of the writers' time that does not fit between two checkpoints, `between_s`
    apart in s.
    """
    writing = positive("file_bytes", file_bytes) / positive("writer_bytes_per_s",
        writer_bytes_per_s)
    return np.maximum(0.0, 1 - positive("between_s", between_s) / writing)[()]
