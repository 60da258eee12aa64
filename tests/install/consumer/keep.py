"""Counts its own lives: each start brings the count back, adds one and saves it."""

import backstay
import numpy as np

lives = np.zeros(1, np.int64)
with backstay.init():
    backstay.protect("lives", lives)
    backstay.restart()
    lives[0] += 1
    backstay.wait(backstay.checkpoint(), timeout_s=60)
print("lives", lives[0])
