"""Paper 004, Fig. 8, from what `backstay tune` measured: bandwidth over the number of files."""

from ..sweep import Measured
from .style import COLOURS, MARKERS, canvas, line, metric, note, processors_axis


def _at(one: Measured) -> int:
    return one.setting.files_of(one.ranks)


def files_and_bandwidth(done: list[Measured]):
    """A line of the writers with a file each; the others as points."""
    figure, axes = canvas("Bandwidth of a version by its number of files",
                          "files of a version", "bandwidth until durable")
    plain = [one for one in done if one.setting.is_plain]
    own = [one for one in plain if one.setting.name == "writers" and not one.setting.files]
    groups = {"a file per process": [one for one in plain if one.setting.name == "file_per_process"],
              "collective": [one for one in plain if one.setting.name == "collective"],
              "writers, one file": [one for one in plain if one.setting.name == "writers"
                                    and one.setting.files],
              "other buffer or alignment": [one for one in done if one not in plain]}
    if own:
        own.sort(key=_at)
        line(axes, 0, [_at(one) for one in own], [one.bytes_per_s for one in own],
             "writers, a file each")
    for number, (label, points) in enumerate(groups.items(), 1):
        if points:
            axes.scatter([_at(one) for one in points], [one.bytes_per_s for one in points],
                         color=COLOURS[number], marker=MARKERS[number], s=60, label=label, zorder=3)
    processors_axis(axes, sorted({_at(one) for one in done}))
    axes.set_ylim(0)
    axes.yaxis.set_major_formatter(metric("B/s"))
    axes.legend(loc="best")
    note(figure, f"As paper 004, Fig. 8; {done[0].ranks} ranks, {done[0].bytes / 1e6:.4g} MB a "
                 "version, medians")
    return figure
