"""Paper 002: Table 2 as a heat map, and how many losses are survived with how many replicas."""

import numpy as np
from matplotlib.colors import LogNorm

from .. import survival
from ..words import counted
from .style import SEQUENTIAL, canvas, line, note, readable_on

NODES = 2 ** np.arange(3, 12)
REPLICAS, TARGETS = (1, 2, 3, 4), (0.9, 0.99, 0.999)
MANY = range(1, 9)


def _percent(target: float) -> str:
    return f"{100 * target:g} %"


def allowed(nodes=NODES) -> np.ndarray:
    """Losses allowed: a row for each number of nodes, columns as in Table 2."""
    return np.array([[survival.allowed_failures(int(n), r, t) for r in REPLICAS for t in TARGETS]
                     for n in nodes])


def heat_map():
    """Table 2. The colour is the share of the nodes, the number in a cell how many may be lost."""
    figure, axes = canvas("Nodes that may be lost at once", "chance that a restart is possible",
                          "nodes", (9.0, 5.6))
    cells = allowed()
    shares = 100 * cells / NODES[:, None]
    image = axes.pcolormesh(shares, cmap=SEQUENTIAL, norm=LogNorm(0.1, 60), edgecolor="white",
                            linewidth=1)
    for row, column in np.ndindex(cells.shape):
        axes.text(column + 0.5, row + 0.5, cells[row, column], ha="center", va="center",
                  color=readable_on(image.to_rgba(shares[row, column])))  # fmt: skip
    axes.set_xticks(np.arange(12) + 0.5, [_percent(t) for _ in REPLICAS for t in TARGETS],
                    fontsize=10.5)
    axes.set_yticks(np.arange(len(NODES)) + 0.5, NODES)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    for group, replicas in enumerate(REPLICAS):
        axes.text(3 * group + 1.5, len(NODES) + 0.12, counted(replicas, "replica"), ha="center")
        axes.axvline(3 * group, color="white", linewidth=6)
    axes.set_title(axes.get_title(loc="left"), loc="left", pad=28)
    bar = figure.colorbar(image, ax=axes, label="share of the nodes (%, log scale)", pad=0.02)
    bar.set_ticks([0.1, 1, 10, 50], labels=["0.1", "1", "10", "50"])
    bar.minorticks_off()
    note(figure, "Paper 002, Table 2, by e^(−λ), λ = f C(f−1, r) / C(n−1, r)")
    return figure


def survived():
    """Losses survived against replicas, as a share of the nodes."""
    figure, axes = canvas("What another replica buys: losses survived with 99.9 %",
                          "replicas of each checkpoint",
                          "nodes lost at once (% of all)")  # fmt: skip
    for number, nodes in enumerate((64, 512, 2048, 16384, 131072)):
        share = [100 * survival.allowed_failures(nodes, r, 0.999) / nodes for r in MANY]
        line(axes, number, list(MANY), share, counted(nodes, "node"))
    axes.set_ylim(0)
    axes.set_xticks(list(MANY))
    axes.legend(loc="upper left")
    note(figure, "Paper 002, § 5.4 and Table 2: balanced random replicas, simultaneous losses")
    return figure


FIGURES = {"002-table-2-survival": heat_map, "002-losses-against-replicas": survived}
