"""Paper 004, Fig. 8, from what `backstay tune` measured: bandwidth over the number of files."""

import matplotlib

from ..sweep import Measured
from .style import COLOURS, MARKERS, RULES, canvas, line, metric, note, processors_axis

OWN = "writers, a file each"


def _group(one: Measured) -> str:
    if one.setting[3:] != type(one.setting)(one.setting.name)[3:]:
        return "other buffer or alignment"
    shared = OWN if not one.setting.files else "writers, one file"
    return {"file_per_process": "a file per process", "writers": shared}.get(
        one.setting.name, "collective")


@matplotlib.rc_context(RULES)
def files_and_bandwidth(done: list[Measured]):
    """A line of the writers with a file each; the others as points."""
    figure, axes = canvas("Bandwidth of a version by its number of files", "files of a version",
                          "bandwidth until durable")
    for number, label in enumerate(dict.fromkeys(map(_group, done))):
        points = sorted((one.setting.files_of(one.ranks), one.bytes_per_s) for one in done
                        if _group(one) == label)
        if label == OWN:
            line(axes, number, *zip(*points, strict=True), label)
        else:
            axes.scatter(*zip(*points, strict=True), color=COLOURS[number], marker=MARKERS[number],
                         s=60, label=label, zorder=3)
    processors_axis(axes, sorted({one.setting.files_of(one.ranks) for one in done}))
    axes.set_ylim(0)
    axes.yaxis.set_major_formatter(metric("B/s"))
    axes.legend(loc="best")
    note(figure, f"As paper 004, Fig. 8; {done[0].ranks} ranks, {done[0].bytes / 1e6:.4g} MB a "
                 "version, medians")
    return figure
