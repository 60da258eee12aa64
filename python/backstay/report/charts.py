"""A history as Plotly's figures: plain dictionaries of `data` and `layout`, for plotly.js."""

import math

from . import text
from .history import History, Mark, Version
from .nodes import listed
from .times import Times

# Okabe and Ito's colours, which colour-blind readers can distinguish.
BLUE, ORANGE, GREEN, PINK, SKY, BLACK = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#000000"
# name, when a version reached it, colour, symbol
LEVELS = (("local", lambda v: v.local_s, BLUE, "circle"),
          ("protected", lambda v: v.protected_s, GREEN, "square"),
          ("durable", lambda v: v.durable_s, BLACK, "star"))  # fmt: skip
TICKS = 8  # of an axis of whole numbers, and of a logarithmic one
SHOWN_LOSSES = 50  # of nodes, as lines in the timeline
# Of the chart of ranks: points of all versions together, versions to choose from.
SHOWN_RANKS, SHOWN_VERSIONS = 200_000, 50
MARKS = {"capture_failed": "x", "write_failed": "triangle-down", "removed": "circle-open",
         "set_aside": "square-x",
         "skipped": "diamond-open", "restart_failed": "cross", "durable_failed": "star-open",
         "protect_failed": "square-open", "overtaken": "hexagon-open"}  # fmt: skip
NO_TROUBLE = ("removed", "overtaken")
COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, BLACK, "#e69f00",
           "#999999")  # of nodes, as many as can be distinguished


def plain_layout(x: str, y: str, **more) -> dict:
    axis = {"gridcolor": "#d9d9d9", "zeroline": False, "automargin": True}
    return {"xaxis": {"title": {"text": x}, **axis},
            "yaxis": {"title": {"text": y, "standoff": 12}, **axis},
            "font": {"size": 14}, "paper_bgcolor": "white", "plot_bgcolor": "white",
            "hovermode": "closest",
            "margin": {"l": 80, "r": 50, "t": 20, "b": 60}, "modebar": {"orientation": "v"},
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
            **more}  # fmt: skip


def whole(axis: dict, numbers) -> None:
    """Ticks of an axis of versions or ranks at whole numbers only, at most about TICKS of them: 1,
    2, 5, 10, .. apart.
    """
    span = max(numbers, default=0) - min(numbers, default=0)
    steps = (step * 10**power for power in range(20) for step in (1, 2, 5))
    axis.update(tick0=0, dtick=next(step for step in steps if span <= step * TICKS), tickformat="d")


def _log(layout: dict, data: list[dict], shown) -> dict:
    """A logarithmic y axis with ticks at 1, 2, 5, 10, .. as `shown` writes them; only tens if there
    are many.
    """
    values = [value for row in data for value in row["y"]]
    if values:
        low, high = min(values), max(values)
        powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
        near = [step * 10.0**power for power in powers for step in (1, 2, 5)
                if low / 2 <= step * 10.0**power <= 2 * high]
        ticks = near if len(near) <= TICKS else [10.0**power for power in powers]
        layout["yaxis"].update(type="log", tickvals=ticks, ticktext=[shown(one) for one in ticks])
    return layout


def _bars(name: str, colour: str, rows: list) -> dict:
    """`rows`: (version, begin, end)."""
    return {"type": "bar", "orientation": "h", "name": name,
            "marker": {"color": colour, "line": {"color": colour, "width": 2}},
            "y": [row[0] for row in rows], "base": [row[1] for row in rows],
            "x": [row[2] - row[1] for row in rows],
            "width": 0.6,
            "hovertemplate": f"version %{{y}}, {name}: %{{x:.4g}} s from %{{base:.6g}} "
                             f"s<extra></extra>"}  # fmt: skip


def timeline(history: History) -> dict:
    captured = history.captured
    data = [_bars("being captured", ORANGE,
                  [(v.number, v.begin_s, v.captured_s) for v in captured]),
            _bars("captured, being written", SKY,
                  # fmt: skip.
                  [(v.number, v.captured_s, end) for v in captured
                   if (end := v.durable_s if history.by_ranks else v.local_s) is not None])]
    for name, value, colour, symbol in LEVELS:
        reached = [v for v in captured if value(v) is not None]
        if reached or (name == "local" and not history.by_ranks):
            data.append({"type": "scatter", "mode": "markers", "name": name,
                         "marker": {"color": colour, "size": 9, "symbol": symbol},
                         "x": [value(v) for v in reached],
                         "y": [v.number for v in reached]})  # fmt: skip
    for kind, symbol in MARKS.items():
        found = [one for one in history.marks if one.kind == kind]
        if found:
            data.append({"type": "scatter", "mode": "markers", "name": kind.replace("_", " "),
                         "marker": {"symbol": symbol, "size": 10,
                                    "color": "#777777" if kind in NO_TROUBLE else PINK},
                         "x": [one.at_s for one in found], "y": [one.version for one in found],
                         "text": [_where(history, one) for one in found]})  # fmt: skip
    for name, colour, dash, times in (("failure", BLACK, "solid",
                                       [one.at_s for one in history.failures]),
                                      ("restart", GREEN, "dash",
                                       [one.at_s for one in history.restarts]),
                                      ("node lost", PINK, "dot",
                                       [one.at_s for one in history.lost_nodes[:SHOWN_LOSSES]]),
                                      ("node back", SKY, "dot",
                                       [one.back_s for one in history.lost_nodes[:SHOWN_LOSSES]
                                        if one.back_s is not None])):  # fmt: skip
        numbers = [v.number for v in history.versions] or [0]
        ends = (min(numbers) - 0.5, max(numbers) + 0.5, None)
        if times:
            data.append({"type": "scatter", "mode": "lines", "name": name,
                         "line": {"color": colour, "dash": dash},
                         "x": [t for at in times for t in (at, at, None)],
                         "y": [end for _ in times for end in ends]})  # fmt: skip
    layout = plain_layout("time since the first event (s)", "version", barmode="overlay")
    whole(layout["yaxis"], [v.number for v in history.versions])
    return {"data": data, "layout": layout}


def _where(history: History, mark: Mark) -> str:
    on = f"{listed(mark.nodes)}{': ' if mark.why else ''}" if len(history.nodes) > 1 else ""
    return f"{on}{mark.why}"


def _line(name: str, colour: str, symbol: str, points: list) -> dict:
    return {"type": "scatter", "mode": "lines+markers", "name": name, "line": {"color": colour},
            "marker": {"symbol": symbol, "size": 8}, "x": [p[0] for p in points],
            "y": [p[1] for p in points]}  # fmt: skip


def level_times(history: History) -> dict:
    captured = history.captured
    data = [_line("blocked: the longest that a rank waited", ORANGE, "circle",
                  [(v.number, v.blocked_s) for v in captured if v.blocked_s > 0]),
            _line("until captured", SKY, "diamond",
                  # fmt: skip.
                  [(v.number, v.captured_s - v.begin_s) for v in captured
                   if v.captured_s > v.begin_s])]
    for name, value, colour, symbol in LEVELS:
        points = [(v.number, value(v) - v.begin_s) for v in captured if value(v) is not None
                  and value(v) > v.begin_s]
        if points or (name == "local" and not history.by_ranks):
            data.append(_line(f"until {name}", colour, symbol, points))
    layout = _log(plain_layout("version", "time (log scale)"), data, text.time)
    whole(layout["xaxis"], [v.number for v in captured])
    return {"data": data, "layout": layout}


def choice(history: History) -> list:
    """Versions whose ranks can be shown, newest first: evenly spread over all, as many as a list
    and a page hold.
    """
    with_ranks = [v for v in history.captured if v.ranks][::-1]
    most = min(SHOWN_VERSIONS, SHOWN_RANKS // max((len(v.ranks) for v in with_ranks), default=1))
    step = -(-len(with_ranks) // max(1, most)) or 1
    return with_ranks[::step]


def coloured(history: History) -> list[str]:
    """Nodes that have a colour each; none where there is one node, or more than there are colours.
    Writers and workers, where ranks write.
    """
    if history.by_ranks:
        return ["writer", "worker"]
    return history.nodes if 1 < len(history.nodes) <= len(COLOURS) else []


def _points(version: Version, groups: list[str]) -> dict:
    """The version's ranks, those of each of these nodes or roles by themselves; "": of all."""
    of = [[r for r in version.ranks if group in ("", r.role or r.node)] for group in groups]
    return {"x": [[r.rank for r in some] for some in of],
            "y": [[1000 * r.io_s for r in some] for some in of]}


def chooser(layout: dict, shown: list[Version], points: list[dict]) -> None:
    """A list of versions, each with its points, above the figure."""
    buttons = [{"label": f"version {v.number}", "method": "restyle", "args": [one]} for v,
               one in zip(shown, points, strict=True)]
    layout["margin"]["t"] = 60
    layout["updatemenus"] = [{"buttons": buttons, "x": 0, "xanchor": "left",
                              "y": 1.2}] if buttons else []


def ranks(history: History) -> dict:
    """As paper 004's Figs. 9 to 11: a point a rank, the versions to choose from."""
    shown = choice(history)
    groups = coloured(history) or [""]
    points = [_points(v, groups) for v in shown]
    data = [{"type": "scatter", "mode": "markers", "name": group,
             "marker": {"color": colour, "size": 6},
             "x": points[0]["x"][at], "y": points[0]["y"][at],
             "hovertemplate": "rank %{x}: %{y:.4g} ms<extra></extra>"}
            # fmt: skip.
            for at, (group, colour) in enumerate(zip(groups, COLOURS, strict=False))] if points else []
    layout = plain_layout("rank", "I/O time of the rank (ms)", showlegend=len(groups) > 1)
    layout["yaxis"].update(rangemode="tozero")
    whole(layout["xaxis"], [r.rank for v in shown for r in v.ranks])
    chooser(layout, shown, points)
    layout["legend"]["x"] = 0.25  # beside the versions
    return {"data": data, "layout": layout}


def bandwidths(history: History, probe: dict | None) -> dict:
    captured = [v for v in history.captured if v.bytes > 0]
    data = [_line("perceived: bytes / longest wait of a rank", ORANGE, "circle",
                  [(v.number, v.bytes / v.blocked_s) for v in captured if v.blocked_s > 0]),
            _line("real: bytes / time from the first byte handed to the disk to local", BLUE,
                  "square",
                  [(v.number, v.bytes / v.disk_s) for v in captured if v.disk_s])]  # fmt: skip
    written = [v for v in captured if (v.durable_s or 0) > v.begin_s]
    if history.by_ranks:
        data[1] = _line("real: bytes / time from begin to durable", BLUE, "square",
                        [(v.number, v.bytes / (v.durable_s - v.begin_s)) for v in written])
    older = [(v.number, v.bytes / v.writing_s) for v in captured if v.writing_s and not v.disk_s]
    if older:
        data.append(_line("too high, of an older agent: bytes / time from captured to local",
                          "#8888bb", "square-open", older))
    numbers = [v.number for v in captured]
    for name, colour, rate in (("memory copy of this machine", "#8a5a00",
                                (probe or {}).get("copy_bytes_per_s")),
                               ("disk write of this machine", "#555555",
                                (probe or {}).get("disk_bytes_per_s"))):  # fmt: skip
        if rate and numbers:
            data.append({"type": "scatter", "mode": "lines", "name": name,
                         "line": {"color": colour, "dash": "dash"},
                         "x": [min(numbers) - 0.5, max(numbers) + 0.5],
                         "y": [rate, rate]})  # fmt: skip
    layout = _log(plain_layout("version", "bandwidth (log scale)"), data,
                  lambda rate: f"{text.size(rate)}/s")
    whole(layout["xaxis"], numbers)
    return {"data": data, "layout": layout}


def time_lost(times: Times) -> dict:
    data = []
    for name, colour, shares in (("measured", BLUE, times.measured),
                                 ("expected", ORANGE, times.expected)):
        if shares is not None:
            values = [100 * share for share in shares.values()]
            data.append({"type": "bar", "name": name, "marker": {"color": colour},
                         "x": list(shares), "y": values,
                         "text": [f"{value:.3g} %" for value in values], "textposition": "outside",
                         "cliponaxis": False})  # fmt: skip
    return {"data": data, "layout": plain_layout("", "share of the time (%)", barmode="group")}
