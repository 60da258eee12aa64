"""Paper 000, Figs. 3.1 and 4.2: throughput and creates a second, from what bench/creates
measured.
"""

from ..creates import Creates, modelled_bytes_per_s
from .style import canvas, line, metric, note, processors_axis

THROUGHPUT = "000-fig-3.1-file-per-process"
CREATES = "000-fig-4.2-creates"
SERIES = {"files_per_s": "files", "streams_per_s": "objects",
          "files_synced_per_s": "files, until on the disk",
          "streams_synced_per_s": "objects, until on the disk"}  # fmt: skip


def throughput(measured: list[Creates]):
    """Fig. 3.1: a file per process, modelled and measured; beside it an object per process."""
    shown = sorted(measured)
    figure, axes = canvas("Throughput of a checkpoint, a file per process",
                          "processes of one node", "throughput, until on the disk")
    at = [one.processes for one in shown]
    line(axes, 0, at, [modelled_bytes_per_s(one) for one in shown], "modelled, eq. 3.3")
    line(axes, 1, at, [one.own_file_bytes_synced_per_s for one in shown], "measured, files")
    line(axes, 2, at, [one.stream_bytes_synced_per_s for one in shown], "measured, objects")
    processors_axis(axes, at)
    axes.set_ylim(0)
    axes.yaxis.set_major_formatter(metric("B/s"))
    axes.legend(loc="best")
    note(figure, "Paper 000, Fig. 3.1, measured by bench/creates on one machine; modelled with its "
                 "disk and creates")
    return figure


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


FIGURES = {THROUGHPUT: throughput, CREATES: creates}
