"""Paper 000, Figs. 3.2 to 3.4 and 4.3 to 4.6: intervals, throughput and overhead on the machines of
Table 3.1.
"""

import numpy as np

from .. import model, systems
from .style import COLOURS, binary, canvas, duration_axis, line, note, processors_axis, rate_axis

MACHINES = {"red-storm": "Red Storm", "bluegene-l": "BlueGene/L", "jaguar": "Jaguar",
            "petaflop": "Petaflop"}
METHODS = {"pfs": "parallel file system", "lwfs": "lightweight storage",
           "overlay": "lightweight + overlay"}
PROCESSORS = 2 ** np.arange(0, 18)
BARS = 2 ** np.arange(10, 18)
TICKS = 2 ** np.arange(0, 18, 2)
PROCESSORS_LABEL = "compute processors"
ASSUMED = "MTTI 5 years a processor, half of the memory saved"
STAGED = "1 024 staging processors, each with twice a processor's memory;\n" + ASSUMED


def _curves(title: str, y: str, series, assumed: str):
    """`series`: (label, value at each of PROCESSORS, more for the line)."""
    figure, axes = canvas(title, PROCESSORS_LABEL, y)
    for number, (label, values, more) in enumerate(series):
        line(axes, number, PROCESSORS, values, label, **more)
    processors_axis(axes, TICKS)
    note(figure, f"Paper 000, {assumed}")
    return figure, axes


def _by_machine(title: str, y: str, value):
    known = systems.systems()
    series = [(label, value(model.checkpoint(known[name], PROCESSORS)), {}) for name,
              label in MACHINES.items()]
    return _curves(title, y, series, f"eqs. 3.2 and 3.3; {ASSUMED}")


def _by_method(title: str, y: str, value):
    storm, wide = systems.system("red-storm"), {"linewidth": 6,
                                                "markersize": 11}  # seen below the second, which covers it
    series = [(label, value(model.checkpoint(storm, PROCESSORS, method)),
               wide if method == "pfs" else {})
              for method, label in METHODS.items()]  # fmt: skip
    return _curves(title, y, series, f"eqs. 3.2, 3.3, 4.1, 4.2. {STAGED}")


def interval_by_machine():
    """Fig. 3.2."""
    figure, axes = _by_machine("Best checkpoint interval, parallel file system",
                               "interval (log scale)",
                               lambda found: found.interval_s)  # fmt: skip
    duration_axis(axes.yaxis, (300, 600, 1200, 1800, 3600, 7200))
    axes.set_ylim(400, 12000)
    axes.legend(loc="upper right")
    return figure


def throughput_by_machine():
    """Fig. 3.3."""
    figure, axes = _by_machine("Throughput of a checkpoint, parallel file system",
                               "throughput (log scale)",
                               lambda found: found.throughput_bytes_per_s)  # fmt: skip
    rate_axis(axes)
    axes.set_ylim(1e9, 2e12)
    axes.legend(loc="lower right")
    return figure


def overhead_by_machine():
    """Fig. 3.4."""
    figure, axes = _by_machine("Time spent saving, parallel file system",
                               "share of execution time (%)",
                               lambda found: 100 * found.overhead_fraction)  # fmt: skip
    axes.set_ylim(0, 80)
    axes.legend(loc="upper left")
    return figure


def interval_by_method():
    """Fig. 4.3."""
    figure, axes = _by_method("Best checkpoint interval on Red Storm", "interval (log scale)",
                              lambda found: found.interval_s)  # fmt: skip
    duration_axis(axes.yaxis, (300, 600, 1200, 1800, 3600, 7200))
    axes.set_ylim(200, 9000)
    axes.legend(loc="upper right")
    return figure


def throughput_by_method():
    """Fig. 4.4, with what bounds it."""
    figure, axes = _by_method("Throughput of a checkpoint on Red Storm", "throughput (log scale)",
                              lambda found: found.throughput_bytes_per_s)  # fmt: skip
    storm = systems.system("red-storm")
    for rate, label in ((storm.bisection_bytes_per_s, "bisection"),
                        (storm.storage_bytes_per_s, "storage")):
        axes.axhline(rate, color="#777777", linewidth=1.2, zorder=1)
        axes.annotate(label, (PROCESSORS[0], rate), xytext=(0, 4), textcoords="offset points",
                      color="#555555")
    rate_axis(axes)
    axes.set_ylim(1e9, 6e12)
    axes.legend(loc="lower right")
    return figure


def _bars(title: str, y: str, value, axes_rule, assumed: str):
    figure, axes = canvas(title, PROCESSORS_LABEL, y)
    known, place = systems.systems(), np.arange(len(BARS))
    for number, (name, label) in enumerate(MACHINES.items()):
        axes.bar(place + (number - 1.5) * 0.2, value(known[name]), 0.19, color=COLOURS[number],
                 label=label,
                 hatch=("", "///", "...", "xx")[number], edgecolor="white",
                 linewidth=0.5)  # fmt: skip
    axes.set_xticks(place, [binary(n) for n in BARS])
    axes.grid(axis="x", visible=False)
    axes_rule(axes)
    note(figure, assumed)
    return figure


def overlay_overhead():
    """Fig. 4.5."""

    def rule(axes):
        axes.set_yscale("log")
        axes.set_yticks((0.1, 1, 10, 50), ("0.1", "1", "10", "50"))
        axes.axhline(1, color="#777777", linewidth=1.2, zorder=1)
        axes.legend(loc="upper left")

    return _bars("Time spent saving with lightweight storage and overlay",
                 "share of execution time (%, log scale)",
                 lambda machine: 100 * model.checkpoint(machine, BARS,
                                                        "overlay").overhead_fraction, rule,
                 f"Paper 000, eqs. 3.2, 4.1, 4.2. {STAGED}")  # fmt: skip


def overlay_gain():
    """Fig. 4.6: (P_fs − P_overlay)/P_fs."""

    def gain(machine):
        direct = model.checkpoint(machine, BARS).overhead_fraction
        return 100 * (direct - model.checkpoint(machine, BARS,
                                                "overlay").overhead_fraction) / direct

    def rule(axes):
        axes.set_ylim(0, 112)
        axes.legend(loc="upper right", ncols=2)

    return _bars("How much less time is spent saving, overlay against file system",
                 "relative difference (%)", gain, rule,
                 f"Paper 000, § 4.3: (P_fs − P_overlay) / P_fs.\n{STAGED}")  # fmt: skip


FIGURES = {
    "000-fig-3.2-interval": interval_by_machine,
    "000-fig-3.3-throughput": throughput_by_machine,
    "000-fig-3.4-overhead": overhead_by_machine,
    "000-fig-4.3-interval-overlay": interval_by_method,
    "000-fig-4.4-throughput-overlay": throughput_by_method,
    "000-fig-4.5-overhead-overlay": overlay_overhead,
    "000-fig-4.6-gain-of-the-overlay": overlay_gain,
}
