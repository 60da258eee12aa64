"""Lost nodes come back after a repair; a job with spare nodes waits only when too many are away."""

import numpy as np

from ..check import count, positive, whole


class Repairs:
    """`spares` nodes beyond what the job needs; a repair takes `repair_s` on average, exponential
    unless `fixed`.
    """

    def __init__(self, repair_s: float, spares: int = 0, fixed: bool = False):
        self._repair_s, self._fixed = float(positive("repair_s", repair_s)), fixed
        self._spares = whole("spares", spares, 0, 100_000)

    def start(self, jobs: int, nodes_max: int, rng: np.random.Generator) -> None:
        """All nodes of all jobs are there. At most `nodes_max` are lost at once."""
        self._rng = rng
        # While a job runs at most `spares` are away, so that nodes_max places are free for the next
        # loss.
        self._back_at = np.full((jobs, self._spares + max(1, nodes_max)), -np.inf)

    def lose(self, job: np.ndarray, at_s: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """`nodes` of each `job` fail; how long each waits until enough nodes are there again, in s.
        """
        back = np.sort(self._back_at[job], axis=1)
        takes = np.broadcast_to(self._repair_s,
                                back.shape) if self._fixed else self._rng.exponential(
            self._repair_s, back.shape)  # fmt: skip
        new = np.arange(back.shape[1]) < count("nodes", nodes, 0)[:, None]
        back = np.sort(np.where(new, at_s[:, None] + takes, back), axis=1)
        self._back_at[job] = back
        return np.maximum(0.0, back[:, back.shape[1] - 1 - self._spares] - at_s)
