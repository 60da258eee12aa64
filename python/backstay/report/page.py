"""The report as one HTML file: plotly.js and all data are in it, nothing is fetched."""

import datetime
import html
import json

from plotly.offline import get_plotlyjs

from . import charts
from .history import History
from .times import Times

STYLE = """
body{font:16px/1.5 system-ui,"DejaVu Sans",sans-serif;max-width:1100px;margin:0 auto;padding:1rem 2rem;color:#222}
h1{margin-bottom:.2rem}h2{margin:2rem 0 .2rem}p{margin:.3rem 0;max-width:75ch}.plot{height:430px}
table{border-collapse:collapse}td,th{padding:.25rem .9rem .25rem 0;text-align:left;border-bottom:1px solid #ddd}
.warn{border-left:4px solid #d55e00;padding-left:.8rem}
"""


def _time(value: float) -> str:
    for name, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if value >= 1.5 * size:
            return f"{value / size:.3g} {name}"
    return f"{value:.3g} s" if value >= 0.1 or value == 0 else f"{1000 * value:.3g} ms"


def _size(value: float) -> str:
    for name, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:.4g} {name}"
    return f"{value:.0f} B"


def _table(head: list[str], rows: list[list]) -> str:
    def line(tag, cells):
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    return f"<table>{line('th', head)}{''.join(line('td', row) for row in rows)}</table>"


def _failures(history: History) -> str:
    rows = []
    for one in history.failures:
        back = one.restart
        came = f"version {back.version} from {back.source}, {_size(back.bytes)} in {_time(back.seconds)}" if back else "not yet"
        ranks = ", ".join(map(str, one.ranks[:8])) + (" .." if len(one.ranks) > 8 else "")
        rows.append([_time(one.at_s), ranks, came, "" if one.redone_s is None else _time(one.redone_s)])
    return _table(["after", "lost ranks", "came back from", "work done again"], rows) if rows else "<p>No rank was lost.</p>"


def _restarts(history: History) -> str:
    rows = [[_time(one.at_s), one.version, one.source, _size(one.bytes), _time(one.seconds)] for one in history.restarts]
    return _table(["after", "version", "from", "size", "took"], rows) if rows else "<p>No restart.</p>"


def _summary(history: History) -> str:
    begin = datetime.datetime.fromtimestamp(history.begin_ns / 1e9, datetime.UTC)
    local = sum(one.local_s is not None for one in history.captured)
    last = history.captured[-1]
    return (f"{begin:%Y-%m-%d %H:%M:%S} UTC, {_time(history.end_s)} observed: {len(history.runs)} runs, "
            f"{len(history.captured)} versions captured, {local} of them local, {len(history.failures)} failures, "
            f"{len(history.restarts)} restarts. A version holds {_size(last.bytes)} of {len(last.ranks)} ranks.")  # fmt: skip


def _lost(times: Times) -> str:
    words = [times.why + "."] if times.why else []
    if times.interval_s is not None:
        words.append(f"Computing between two versions: {_time(times.interval_s)} (median).")
    if times.best_interval_s is not None:
        words.append(f"Mean time to interrupt {_time(times.mtti_s)}: the best would be {_time(times.best_interval_s)} (Daly).")
    return " ".join(words)


def _section(number: int, title: str, text: str, figure: dict | None, below: str = "") -> str:
    plot = "" if figure is None else f'<div class="plot" id="plot{number}" role="img" aria-label="{html.escape(title)}"></div>'
    return f"<section><h2>{html.escape(title)}</h2><p>{html.escape(text)}</p>{plot}{below}</section>"


def render(history: History, times: Times, probe: dict | None, unreadable: list[str]) -> str:
    """The page. `history` has at least one captured version. `probe`: memory and disk in B/s, or None."""
    limit = "" if probe else "The machine was not measured; `backstay probe` adds its limits."
    parts = [
        ("Versions and levels", "Each version from the first rank's begin to local.", charts.timeline(history), ""),
        ("Blocked and local times", "How long the program waited, and when the version was on disk.",
         charts.level_times(history), ""),
        ("I/O time of each rank", "A point is a rank, as in Figs. 9 to 11 of paper 004.", charts.ranks(history), ""),
        ("Bandwidth", "What the program sees, what the disk does. " + limit, charts.bandwidths(history, probe), ""),
        ("Failures", "", None, _failures(history)),
        ("Restarts", "", None, _restarts(history)),
        ("Time lost", _lost(times), charts.time_lost(times), ""),
    ]  # fmt: skip
    body = "".join(_section(number, *part) for number, part in enumerate(parts))
    figures = {f"plot{number}": part[2] for number, part in enumerate(parts) if part[2] is not None}
    data = json.dumps(figures, allow_nan=False).replace("<", "\\u003c")
    warning = ""
    if unreadable:
        shown = "".join(f"<li>{html.escape(one)}</li>" for one in unreadable[:20])
        warning = f'<div class="warn"><p>{len(unreadable)} lines of the log could not be read and are left out:</p><ul>{shown}</ul></div>'
    job = html.escape(history.job)
    return (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{job}: report</title>'
            f'<link rel="icon" href="data:,"><style>{STYLE}</style><script>{get_plotlyjs()}</script></head><body>'
            f"<h1>{job}</h1><p>{html.escape(_summary(history))}</p>{warning}{body}"
            f'<script>const figures={data};for(const id in figures)'
            f"Plotly.newPlot(id,figures[id].data,figures[id].layout,{{responsive:true,displaylogo:false,displayModeBar:'hover'}});"
            f"document.body.dataset.drawn=Object.keys(figures).length;</script></body></html>\n")  # fmt: skip
