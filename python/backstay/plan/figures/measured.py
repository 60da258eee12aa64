"""Paper 000, Fig. 4.2: creates a second, from what bench/creates measured."""

from ..creates import Creates
from .style import canvas, line, metric, note, processors_axis

CREATES = "000-fig-4.2-creates"
SERIES = {"files_per_s": "files", "streams_per_s": "objects",
          "files_synced_per_s": "files, until on the disk",
          "streams_synced_per_s": "objects, until on the disk"}  # fmt: skip


def creates(measured: list[Creates]):
    """A point for each number of processes."""
    shown = sorted(measured)
    figure, axes = canvas("Creates a second", "processes of one node",
                          "creates a second (log scale)")  # fmt: skip
    at = [one.processes for one in shown]
    for number, (name, label) in enumerate(SERIES.items()):
        line(axes, number, at, [getattr(one, name) for one in shown], label)
    processors_axis(axes, at)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(metric(""))
    axes.legend(loc="best")
    note(figure, "Paper 000, Fig. 4.2, measured by bench/creates on one machine")
    return figure
