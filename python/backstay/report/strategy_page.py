"""Paper 004's Fig. 12 and Table I, of versions that the ranks wrote: how many wrote at each moment,
and the bandwidth that workers perceive.
"""

import statistics

from ..plan.words import grouped
from . import charts, text
from .history import History, Version

WRITING = ("How many ranks wrote at each moment of the version that is chosen, from their begin "
           "until their file was closed.")  # fmt: skip
IO = (" A rank that writes has ended when its file is closed, a worker when it computes again: the "
      "other ranks may wait for the slowest one.")
PERCEIVED = ("What the workers sent, all together, over the longest time that one of them took to "
             "hand it over (as paper 004's Table I), and over that with its wait until the writer "
             "had all. Medians.")  # fmt: skip
HEAD = ["ranks", "workers", "versions", "sent", "hand-over", "bandwidth", "hand-over and wait",
        "bandwidth"]  # fmt: skip


def _steps(version: Version) -> dict:
    """Milliseconds since the first rank's begin, and ranks that write from then on."""
    first_ns = min(rank.begin_ns for rank in version.ranks)
    begins = [(rank.begin_ns - first_ns) / 1e6 for rank in version.ranks if rank.role == "writer"]
    took = [1e3 * rank.io_s for rank in version.ranks if rank.role == "writer"]
    ends = [begin + ms for begin, ms in zip(begins, took, strict=True)]
    changes = sorted([*((at, 1) for at in begins), *((at, -1) for at in ends)])
    x, y, number = [], [], 0
    for at, change in changes:
        number += change
        x.append(at)
        y.append(number)
    return {"x": [x], "y": [y]}


def writing(history: History) -> dict:
    """As paper 004's Fig. 12."""
    shown = [one for one in charts.choice(history) if one.ranks[0].role]
    points = [_steps(one) for one in shown]
    data = [{"type": "scatter", "mode": "lines", "fill": "tozeroy", "name": "writing",
             "line": {"shape": "hv", "color": charts.BLUE}, "x": one["x"][0], "y": one["y"][0]}
            for one in points[:1]]  # fmt: skip
    layout = charts.plain_layout("time since the version's begin (ms)", "ranks that write",
                                 showlegend=False)
    layout["yaxis"].update(rangemode="tozero")
    charts.whole(layout["yaxis"], [0, *(number for one in points for number in one["y"][0])])
    charts.chooser(layout, shown, points)
    return {"data": data, "layout": layout}


def _rates(versions: list[Version]) -> list[str]:
    """One row: versions of the same number of ranks and workers."""
    workers = [[one for one in version.ranks if one.role == "worker"] for version in versions]
    sent = statistics.median(sum(one.bytes for one in some) for some in workers)
    cells = [grouped(len(versions[0].ranks)), grouped(len(workers[0])), grouped(len(versions)),
             text.size(sent)]
    for took in (lambda one: one.hand_over_s, lambda one: one.hand_over_s + one.wait_s):
        longest = statistics.median(max(map(took, some)) for some in workers)
        cells += [text.time(longest), f"{text.size(sent / longest)}/s" if longest else ""]
    return cells


def perceived(history: History, table) -> str:
    """Table I; nothing where no rank was a worker."""
    groups: dict[tuple, list[Version]] = {}
    for one in history.captured:
        count = sum(rank.role == "worker" for rank in one.ranks)
        if count:
            groups.setdefault((len(one.ranks), count), []).append(one)
    return table(HEAD, [_rates(groups[key]) for key in sorted(groups)]) if groups else ""


def parts(history: History, table) -> list[tuple]:
    """Title, words, figure and table of each part; none of a job with an agent."""
    if not history.by_ranks:
        return []
    found = [("Writing over time", WRITING, writing(history), "")]
    rates = perceived(history, table)
    return found + ([("Perceived bandwidth", PERCEIVED, None, rates)] if rates else [])
