"""How every figure looks: fonts, colours that colour-blind readers can distinguish, axes.

Colours are M. Okabe's and K. Ito's set (Color Universal Design, 2008), in an order in which
neighbours also differ in lightness; each series has a marker and a line style of its own besides.
"""

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)))
SEQUENTIAL = "cividis"  # made for readers with and without colour blindness

RULES = {
    "font.family": "DejaVu Sans", "font.size": 13, "axes.titlesize": 14, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "axes.labelsize": 13, "legend.fontsize": 12,
    "legend.frameon": False,
    "xtick.labelsize": 12, "ytick.labelsize": 12,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True,
    "grid.color": "#d9d9d9", "grid.linewidth": 0.8, "lines.linewidth": 2.2, "lines.markersize": 7,
    "figure.dpi": 100, "savefig.dpi": 150, "svg.fonttype": "none",
}  # fmt: skip


def luminance(colour) -> float:
    """Relative luminance of red, green, blue from 0 to 1, as WCAG 2 defines it."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part
              in colour[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other) -> float:
    """The contrast of two colours, 1 to 21 (WCAG 2); text needs 4.5."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def readable_on(colour) -> str:
    """White or black, whichever has more contrast; one of them always has a contrast above 4.5."""
    return "white" if contrast(colour, (1, 1, 1)) > contrast(colour, (0, 0, 0)) else "black"


def canvas(title: str, x: str, y: str, size=(8.0, 5.0)):
    """(figure, axes) with a title and labelled axes; units belong into the labels."""
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", pad=12)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure, axes


def line(axes, number: int, x, y, label: str, every=None, **more):
    """The `number`th series of a figure. Behind the last colour the first one has other markers."""
    again, one = divmod(number, len(COLOURS))
    axes.plot(x, y, color=COLOURS[one], marker=MARKERS[(one + again) % len(MARKERS)],
              linestyle=DASHES[one], label=label, markevery=every, **more)


def note(figure, text: str) -> None:
    """Assumptions, below the axes."""
    figure.supxlabel(text, fontsize=10.5, color="#555555", x=0.01, ha="left", multialignment="left")


def binary(value, _=None) -> str:
    """512, 8K, 1M."""
    for size, name in ((2**20, "M"), (2**10, "K")):
        if value >= size:
            return f"{value / size:g}{name}"
    return f"{value:g}"


def metric(unit: str):
    """A formatter: 100 MB/s, 2 TB/s."""

    def text(value, _=None):
        for size, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
            if value >= size:
                return f"{value / size:g} {prefix}{unit}"
        return f"{value:g} {unit}"

    return FuncFormatter(text)


def duration(value, _=None) -> str:
    """30 s, 10 min, 2 h, 1 d."""
    for size, name in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if value >= size:
            return f"{value / size:g} {name}"
    return f"{value:g} s"


def processors_axis(axes, ticks) -> None:
    """A logarithmic axis of powers of two."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [binary(tick) for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def duration_axis(axis, ticks) -> None:
    axis.axes.set_yscale("log") if axis.axis_name == "y" else axis.axes.set_xscale("log")
    axis.set_ticks(ticks, [duration(tick) for tick in ticks])
    axis.set_minor_locator(NullLocator())


def rate_axis(axes) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(10))
    axes.yaxis.set_major_formatter(metric("B/s"))
    axes.yaxis.set_minor_locator(NullLocator())
