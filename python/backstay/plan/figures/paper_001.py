"""Paper 001, Table I: ideal checkpoint times by the fill-time law, as bars."""

from .. import fill_time, systems
from .style import COLOURS, canvas, duration, duration_axis, note

MACHINES = {"stampede": "Stampede", "jaguar-2009": "Jaguar (2009)", "titan": "Titan",
            "taihulight": "Sunway TaihuLight",
            "ccr-ub": "CCR, Buffalo", "ssd-node": "one SSD node",
            "exascale-ssd": "exascale, SSD"}  # fmt: skip


def ideal_s(machine: systems.System) -> float:
    return float(fill_time.ideal_checkpoint_s(machine.ram_bytes, machine.storage_bytes,
                                              machine.device_bytes,
                                              machine.device_bytes_per_s))  # fmt: skip


def ideal_times():
    known = systems.systems()
    times = [ideal_s(known[name]) for name in MACHINES]
    figure, axes = canvas("Saving all memory, by the fill-time law", "time (log scale)", "")
    axes.barh(range(len(times)), times, color=COLOURS[0], label="ideal")
    axes.scatter([fill_time.OBSERVED_FACTOR * time for time in times], range(len(times)),
                 color=COLOURS[1], marker="D",
                 s=60, zorder=3,
                 label=f"expected: ideal × {fill_time.OBSERVED_FACTOR:g}, as on Stampede")  # fmt: skip
    axes.set_yticks(range(len(times)), MACHINES.values())
    axes.invert_yaxis()
    duration_axis(axes.xaxis, (10, 60, 600, 3600, 6 * 3600))
    axes.set_xlim(10, 12 * 3600)
    for row, time in enumerate(times):
        text = f"{time / 60:.1f} min" if time >= 60 else duration(round(time))
        axes.annotate(text, (time, row), xytext=(-5, 0), textcoords="offset points", color="white",
                      va="center",
                      ha="right", weight="bold")  # fmt: skip
    axes.grid(axis="y", visible=False)
    axes.set_title(axes.get_title(loc="left"), loc="left", pad=34)
    axes.legend(loc="lower left", bbox_to_anchor=(-0.01, 0.99), ncols=2, borderaxespad=0.2)
    note(figure,
         "Paper 001, § III-D and Table I: (RAM / storage) × (device size / device bandwidth)")
    return figure


FIGURES = {"001-table-1-fill-time": ideal_times}
