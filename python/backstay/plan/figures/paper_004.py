"""Paper 004: production improvement (eq. 1) and speed-up of writer groups (eq. 6)."""

import numpy as np
from matplotlib.ticker import StrMethodFormatter

from .. import strategy
from .style import canvas, line, note


def _plain_log(*axes) -> None:
    for axis in axes:
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))


def improvement():
    """Eq. 1: 1PFPP against rbIO, as the steps between two checkpoints grow."""
    figure, axes = canvas("Production run with writer groups instead of a file per process",
                          "computing steps between two checkpoints (log scale)",
                          "times sooner")  # fmt: skip
    steps = np.geomspace(1, 1000, 49)
    for number, ratio in enumerate((2000, 1000, 500, 200)):
        line(axes, number, steps, strategy.production_improvement(ratio, 20, steps),
             f"a checkpoint takes {ratio:,} steps".replace(",", " "), every=8)  # fmt: skip
    axes.set_xscale("log")
    axes.axvline(20, color="#777777", linewidth=1.2, zorder=1)
    axes.annotate("paper 004", (20, 1), xycoords=("data", "axes fraction"), xytext=(-5, -14),
                  textcoords="offset points",
                  color="#555555", ha="right")  # fmt: skip
    _plain_log(axes.xaxis)
    axes.set_ylim(0)
    axes.legend(loc="upper right")
    note(figure, "Paper 004, eq. 1; with writer groups a checkpoint takes 20 steps")
    return figure


def speedup():
    """Eq. 6 for λ from 0 to 1."""
    figure, axes = canvas("Speed-up of writer groups over collective writing",
                          "λ: share of the writing for which the others wait",
                          "speed-up (log scale)")  # fmt: skip
    blocked = np.linspace(0, 1, 101)
    for number, (ranks, ratio) in enumerate(((64, 1.0), (64, 0.5), (32, 1.0), (16, 1.0))):
        label = f"{ranks} ranks a writer" + (", half the bandwidth" if ratio < 1 else "")
        line(axes, number, blocked,
             strategy.speedup_approximate(65536, 65536 // ranks, 1.0, ratio, blocked), label, 20)
    axes.set_yscale("log", base=2)
    axes.set_yticks((0.5, 1, 2, 4, 8, 16, 32, 64))
    _plain_log(axes.yaxis)
    axes.axhline(1, color="#777777", linewidth=1.2, zorder=1)
    axes.legend(loc="upper right")
    note(figure,
         "Paper 004, eq. 6; 65 536 processes; bandwidth: of the writers together, against "
         "collective writing")
    return figure


FIGURES = {"004-production-improvement": improvement, "004-speed-up": speedup}
