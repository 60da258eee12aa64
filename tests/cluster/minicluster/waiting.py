"""The one place that looks again and again: for what sends no event (a loop device that goes,
Slurm's view of a host).
"""

import time

from .errors import ClusterError

DEADLINE_S = 60
LOOK_AGAIN_S = 0.02


def until(condition, what, deadline_s=DEADLINE_S):
    end = time.monotonic() + deadline_s
    while not (result := condition()):
        if time.monotonic() > end:
            raise ClusterError(f"waited {deadline_s} s for {what}, which did not come")
        time.sleep(LOOK_AGAIN_S)
    return result
