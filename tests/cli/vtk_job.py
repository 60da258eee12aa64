"""A job with two meshes, on two ranks: one in global arrays, one of each rank's own; and some
regions that are none. Two versions: before the second `step` is 7, and `square` has changed.
"""

import backstay
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank = comm.rank
# A strip of 1 x 4 squares, its lower points first; a rank has 5 points and 2 squares.
xy = np.array([(i % 5, i // 5) for i in range(10)], "f4")[5 * rank:5 * rank + 5].copy()
squares = np.array([(i, i + 1, i + 6, i + 5) for i in range(4)])[2 * rank:2 * rank + 2].copy()
own = np.arange(12.0 + 3 * rank).reshape(-1, 3)  # 4 points, then 5
step = np.array([3])
square = np.arange(2, dtype="i4") + 2 * rank
placed = {"xy": xy, "squares": squares, "square": square, "off by one": squares + 5,
          "in a row": np.arange(15.0) + 15 * rank, "complex": xy[:, 0] * 1j,
          "flow <x>": np.stack([xy[:, 0], xy[:, 1], xy[:, 0] * 2], axis=1).astype("f8"),
          "pair": np.stack([xy[:, 1], xy[:, 0]], axis=1), "short": np.zeros((3, 2))}
ranks = {"own": own, "tetra": np.array([(0, 1, 2, 3 + rank)]), "speed": own[:, 0] + 100 * rank,
         "step": step, "wrong tetra": np.array([(0, 1, 2, 4)])}
with backstay.init(comm):
    for name, data in placed.items():
        backstay.protect(name, data, (2 * len(data), *data.shape[1:]),
                         (rank * len(data), *[0] * (data.ndim - 1)))
    for name, data in ranks.items():
        backstay.protect(name, data)
    for number in (3, 7):
        step[0] = number
        square[:] += 10
        backstay.wait(backstay.checkpoint())
