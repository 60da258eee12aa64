"""Paper 004, Figs. 5 to 8 and its equations, from what `bench/io_strategies --out` wrote."""

import json
import math
import re
from statistics import median
from typing import NamedTuple

import numpy as np

from .. import files, strategy
from ..check import PlanError
from ..sweep import Measured, Setting
from .style import COLOURS, canvas, duration_axis, line, metric, note, processors_axis
from .sweep import files_and_bandwidth

NEEDED = ALONE, COLLECTIVE, ONE, OWN = (
    "file per process", "collective, one file", "writers, one file", "writers, a file each")
EQUATIONS = ("measured", "eq. 5", "eq. 6", "eq. 7")
WAITED = {OWN: 0.0, ONE: 1.0}  # λ as predicted: all ranks write one file together


class Curve(NamedTuple):
    """Medians of the slowest rank; `workers_s`: of the ranks that only send."""

    ranks: int
    mib: float
    each: int  # ranks for a writer
    raw_write_s: float
    blocked_s: float
    safe_s: float
    workers_s: float = math.nan
    send_s: float = math.nan

    def bytes_per_s(self, name: str = "safe_s") -> float:
        return self.mib * 2**20 / getattr(self, name)

    def blocked_with(self, between_s):
        """Blocked time with `between_s` between two versions: the next one waits for λ."""
        rest_s = max(self.safe_s - self.blocked_s, 1e-9)
        return self.blocked_s + rest_s * strategy.blocked_fraction_from_steps(rest_s, 1, between_s)

    def speedups(self, collective: "Curve", waited: float) -> tuple[float, ...]:
        """Measured (eq. 2), by eq. 5, by eq. 6 with λ of the measured workers, by eq. 7.

        The paper's writers only write, so these count as busy until the version is durable.
        """
        count = -(-self.ranks // self.each)
        total_s = (self.ranks - count) * self.workers_s + count * self.safe_s
        of = self.ranks, count, collective.bytes_per_s("blocked_s"), self.bytes_per_s()
        share = min(1.0, max(0.0, (self.workers_s - self.send_s) / self.safe_s))
        return (self.ranks * collective.blocked_s / total_s,
                strategy.speedup(*of[:2], self.mib * 2**20, *of[2:], self.bytes_per_s("send_s"),
                                 waited),
                strategy.speedup_approximate(*of, share), strategy.speedup_unblocked(*of))


def read(paths) -> dict[str, dict[int, Curve]]:
    """Curves by name and ranks: of several sizes and ratios of writers the largest. PlanError."""
    groups = {}
    for path in paths:
        try:
            for result in json.loads(files.read_text(path))["results"]:
                for name, curve in result["curves"].items():
                    each = int((re.search(r" (\d+):1", name) or (0, 1))[1])
                    key = re.sub(r" \d+:1", "", name), result["ranks"], result["mib"], each
                    row = [curve[one] for one in Curve._fields[3:8 if key[0] in WAITED else 6]]
                    if not all(math.isfinite(one) and one > 0 for one in (*key[1:], *row)):
                        raise ValueError(name)
                    groups.setdefault(key, []).append(row)
            there = {key[:2] for key in groups}
            if not there or any((one, ranks) not in there for one in NEEDED for _, ranks in there):
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise PlanError("strategies",
                            f"{path}: not what `bench/io_strategies --out` writes") from None
    found = {name: {} for name, *_ in groups}
    for name, *key in sorted(groups, key=lambda key: key[1:]):
        row = map(median, zip(*groups[name, *key], strict=True))
        found[name][key[0]] = Curve(*key, *row)
    return found


def _canvas(series, title: str, x: str, y: str, what: str):
    figure, axes = canvas(title, x, y, (10.0, 5.0))
    sizes = [one.mib for of in series.values() for one in of.values()]
    note(figure, f"Paper 004, {what}\nMeasured by bench/io_strategies with "
                 f"{' to '.join(f'{one:g}' for one in sorted({min(sizes), max(sizes)}))} MiB")
    return figure, axes


def _finish(figure, axes, ranks=(), base: int = 0, unit=None):
    if ranks:
        processors_axis(axes, ranks)
    axes.set_yscale("log", base=base) if base else axes.set_ylim(0)
    axes.yaxis.set_major_formatter(unit or "{x:g}")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def bandwidth(series):
    figure, axes = _canvas(series, "Bandwidth of a version", "ranks", "bandwidth until durable",
                           "Fig. 5, beside a raw write of the same bytes")
    raw = {}
    for number, (name, of) in enumerate(series.items()):
        line(axes, number, of.keys(), [one.bytes_per_s() for one in of.values()], name)
        for one in of.values():
            raw.setdefault(one.ranks, []).append(one.bytes_per_s("raw_write_s"))
    axes.plot(sorted(raw), [median(raw[one]) for one in sorted(raw)], color="#777777", linewidth=4,
              zorder=1, label="raw write")
    return _finish(figure, axes, sorted(raw), unit=metric("B/s"))


def time(series):
    """Bars of the slowest rank; the workers of its writers as measured and by eq. 4."""
    figure, axes = _canvas(series, "Time of a version", "ranks", "seconds (log scale)",
                           "Fig. 6: ranks are blocked, paler: until durable; λ of eq. 4 is 1 with "
                           "one file, 0 with a file each")
    ranks, width = sorted({one for of in series.values() for one in of}), 0.84 / len(series)
    for number, (name, of) in enumerate(series.items()):
        at = [ranks.index(one) + width * (number - (len(series) - 1) / 2) for one in of]
        shown, colour = list(of.values()), COLOURS[number % len(COLOURS)]
        axes.bar(at, [one.safe_s for one in shown], width, color=colour, alpha=0.35)
        axes.bar(at, [one.blocked_s for one in shown], width, color=colour, label=name)
        if name in WAITED:
            labels = ("workers", "workers by eq. 4") if name == OWN else (None, None)
            axes.plot(at, [one.workers_s for one in shown], "wo", markeredgecolor="black",
                      label=labels[0])
            axes.plot(at, [one.send_s + WAITED[name] * one.safe_s for one in shown], "k_",
                      markersize=14, markeredgewidth=2.5, label=labels[1])
    axes.set_xticks(range(len(ranks)), ranks)
    return _finish(figure, axes, base=10)


def ratio(series):
    """Fig. 7 over the computing between two versions, of the most ranks; eq. 1 in the note."""
    most, own = max(series[OWN].items())
    last = {name: of[most] for name, of in series.items() if most in of}
    slowest_s = max(one.safe_s for one in last.values())
    pause_s = np.geomspace(slowest_s / 20, 50 * slowest_s, 61)
    sooner = strategy.production_improvement(last[ALONE].blocked_s, own.blocked_s, own.safe_s)
    figure, axes = _canvas(series, f"Ratio of blocked to computing time, {most} ranks",
                           "computing between two versions (log scale)", "ratio (log scale)",
                           "Fig. 7: the next version waits for what is not written (λ).\nEq. 1: "
                           f"with {own.safe_s:.2g} s between them a run takes {sooner:.3g} times "
                           f"as long with a {ALONE} as with {OWN}.")
    for number, (name, one) in enumerate(last.items()):
        line(axes, number, pause_s, one.blocked_with(pause_s) / pause_s, name, every=10)
    duration_axis(axes.xaxis, [one for one in (0.01, 0.1, 1, 10, 60, 600, 3600, 36000, 360000)
                               if pause_s[0] < one < pause_s[-1]])
    return _finish(figure, axes, base=10)


def number_of_files(series):
    """Fig. 8 of the most ranks, as `backstay tune` draws it."""
    most = max(series[OWN])
    shown = {ALONE: ("file_per_process", 0), COLLECTIVE: ("collective", 1), ONE: ("writers", 1),
             "collective, np/4 files": ("collective", max(1, most // 4)), OWN: ("writers", 0)}
    return files_and_bandwidth([
        Measured(Setting(*setting, one.each), most, 0, one.mib * 2**20, one.blocked_s, one.safe_s)
        for name, setting in shown.items() if (one := series.get(name, {}).get(most))])


def speedup(series):
    figure, axes = _canvas(series, "Speed-up of writers over collective writing", "ranks",
                           "speed-up (log scale)", "eqs. 2 and 5 to 7; λ in eq. 5: 1 with one "
                           "file, 0 with a file each; in eq. 6: of the measured workers")
    number = 0
    for name, shown in ((OWN, 4), (ONE, 2)):
        rows = [one.speedups(series[COLLECTIVE][ranks], WAITED[name])
                for ranks, one in series[name].items()]
        for label, column in zip(EQUATIONS[:shown], zip(*rows, strict=True), strict=False):
            line(axes, number, series[name].keys(), column, f"{name[9:]}, {label}")
            number += 1
    return _finish(figure, axes, sorted(series[OWN]), 2)


FIGURES = {"004-fig-5-bandwidth": bandwidth, "004-fig-6-time": time, "004-fig-7-ratio": ratio,
           "004-fig-8-files": number_of_files, "004-speed-up-measured": speedup}
