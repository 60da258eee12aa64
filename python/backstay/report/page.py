"""The report as one HTML file: plotly.js and all data are in it, nothing is fetched."""

import datetime
import html
import json
import re

from plotly.offline import get_plotlyjs

from ..plan.words import counted, grouped, plural, sentence
from . import charts, files_page, node_charts, node_page, spread, strategy_page, text
from .captured_files import Profile
from .history import History
from .nodes import listed
from .times import Times

STYLE = """
body{font:16px/1.5 system-ui,"DejaVu Sans",sans-serif;max-width:1100px;margin:0 auto;padding:1rem clamp(.6rem,3vw,2rem);color:#222}
h1{margin-bottom:.2rem}h2{margin:2rem 0 .2rem}p{margin:.3rem 0;max-width:75ch}.plot{height:430px}
table{border-collapse:collapse}td,th{padding:.25rem .9rem .25rem 0;text-align:left;border-bottom:1px solid #ddd}
.wide{overflow-x:auto}.short{white-space:nowrap}.plot.high{height:auto}
.warn{border-left:4px solid #d55e00;padding-left:.8rem}
"""


def _table(head: list[str], rows: list[list]) -> str:
    def line(tag, cells):
        short = [' class="short"' if len(str(cell)) < 32 and tag == "td" else "" for cell in cells]
        return "<tr>" + "".join(f"<{tag}{kind}>{html.escape(str(cell))}</{tag}>" for cell,
                                kind in zip(cells, short, strict=True)) + "</tr>"

    return f"<div class=\"wide\"><table>{line('th', head)}{''.join(line('td', row) for row in rows)}</table></div>"


def _failures(history: History) -> str:
    rows = []
    for one in history.failures:
        back = one.restart
        came = f"version {back.version} from {back.source}, {text.size(back.bytes)} in {text.time(back.seconds)}" if back else "not yet"
        ranks = ", ".join(map(str, one.died[:8])) + (" .." if len(one.died) > 8 else "")
        ended = len(one.ranks) - len(one.died)
        if len(history.nodes) > 1:
            ranks += f"; lost with {listed(one.lost)}" if one.lost else f"; first on {one.node}"
        rows.append([text.time(one.at_s), ranks, str(ended) if ended else "", came,
                     "" if one.redone_s is None else text.time(one.redone_s)])
    return _table(["after", "ranks that died", "others ended by MPI", "came back from",
                   "work done again"], rows) if rows else _none_lost(history)


def _none_lost(history: History) -> str:
    said = "Without an agent, nobody writes down which ranks were lost."
    return f"<p>{said if history.by_ranks else 'No rank was lost.'}</p>"


DIED = ("The ranks that left first died, and those of a lost node; after the first death MPI ends "
        "the others. Ranks that died later "
        "than a thousandth of a second after the first are counted among these.")  # fmt: skip


def _refusals(history: History) -> str:
    """They are no failures: the program ended by itself, with what was saved untouched."""
    rows = [[text.time(one.at_s), one.why] for one in history.refusals]
    return _table(["after", "restart refused by the ranks, no failure"], rows) if rows else ""


def _stands(history: History) -> str:
    """From the failure to the first computing after it."""
    rows = [[text.time(one.at_s), text.time(one.seconds), *map(text.time, one[1:])]
            for one in history.stands]
    return _table(["failed after", "stood still", "noticing", "starting the launcher", "init",
                   "reading"], rows) if rows else ""


def _restarts(history: History) -> str:
    several = len(history.nodes) > 1
    rows = [[text.time(one.at_s), one.version, one.source, text.size(one.bytes),
             text.time(one.seconds),
             *([len(one.nodes)] if several else [])] for one in history.restarts]  # fmt: skip
    return _table(["after", "version", "from", "size", "took", *(["nodes"] if several else [])],
                  rows) if rows else "<p>No restart.</p>"


def _summary(history: History) -> str:
    begin = datetime.datetime.fromtimestamp(history.begin_ns / 1e9, datetime.UTC)
    local = sum(spread.level_of(one) != "captured" for one
                in history.captured)  # a higher level includes the lower ones
    last = history.captured[-1]
    on = f" on {counted(len(last.parts), 'node')}" if len(history.nodes) > 1 else ""
    pause = history.end_s - history.observed_s
    paused = f", pauses of {text.time(pause)} between them not counted" if pause > 0.01 * history.end_s else ""
    failures = "" if history.by_ranks else f"{counted(len(history.failures), 'failure')}, "
    levels = "".join(f", {grouped(reached)} {name}" for name in ("protected", "durable")
                     if (reached := sum(getattr(one, f"{name}_s") is not None for one
                                        in history.captured)))  # fmt: skip
    return (f"From {begin:%Y-%m-%d %H:%M:%S} UTC: {counted(len(history.runs), 'run')} of "
            f"{text.time(history.observed_s)} together{paused}; "
            f"{counted(len(history.captured), 'version')} captured, {grouped(local)} "
            f"local{levels}; {failures}"
            f"{counted(len(history.restarts), 'restart')}. A version holds {text.size(last.bytes)} "
            f"of {counted(len(last.ranks), 'rank')}{on}.")  # fmt: skip


def _snapshots(history: History) -> str:
    forked = [[one for one in version.ranks if one.forked] for version in history.captured]
    forked = [ranks for ranks in forked if ranks]
    if not forked:
        return ""
    stood, copied = (max(getattr(one, name) for ranks in forked for one in ranks)
                     for name in ("seconds", "copied_s"))
    return (f"{counted(len(forked), 'version')} by forked snapshots: the programs stood still for "
            f"at most {text.time(stood)}, and ran on while at most {text.time(copied)} passed "
            "until the copy was done.")


def _lost(times: Times) -> str:
    words = [sentence(times.why)] if times.why else []
    if times.interval_s is not None:
        words.append(f"Computing between two versions: {text.time(times.interval_s)} (median).")
    if times.best_interval_s is not None:
        words.append(f"Mean time to interrupt {text.time(times.mtti_s)}: the best would be "
                     f"{text.time(times.best_interval_s)} (Daly).")
    return " ".join(words)


def _paragraph(words: str) -> str:
    """`commands` of the text as code; nothing for no text."""
    marked = re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(words))
    return f"<p>{marked}</p>" if words else ""


def _chosen(history: History) -> str:
    chosen, there = len(charts.choice(history)), sum(bool(v.ranks) for v in history.captured)
    return "" if chosen == there else f" {chosen} of {counted(there, 'version')} can be chosen, evenly spread."


def _section(number: int, title: str, words: str, figure: dict | None, below: str = "") -> str:
    high = " high" if figure is not None and "height" in figure["layout"] else ""
    plot = "" if figure is None else f'<div class="plot{high}" id="plot{number}" role="img" aria-label="{html.escape(title)}"></div>'
    return f"<section><h2>{html.escape(title)}</h2>{_paragraph(words)}{plot}{below}</section>"


def _limit(probe: dict | None) -> str:
    """What the machine's limits were measured with, and beside which other work."""
    if not probe:
        return "The machine was not measured; `backstay probe` adds its limits."
    how = probe.get("how", {})
    words = []
    if "processes" in how:
        words.append(f"{counted(how['processes'], 'process', 'processes')} copied "
                     f"{text.size(how['bytes_each'])} each")
    if "bytes" in how:
        words.append(f"the disk took "
                     f"{text.size(how['bytes'])}{'' if how.get('direct') else ' through the page cache'}")
    if "load" in how:
        words.append(f"the machine had a load of {how['load']:.2g} on "
                     f"{counted(how['cores'], 'core')}")
    return f"The limits are what `backstay probe` measured: {', '.join(words)}." if words else ""


def _parts(history: History, times: Times, probe: dict | None) -> list[tuple]:
    """Title, words, figure and table of each part."""
    limit = _limit(probe)
    parts = [
        ("Versions and levels",
         "Each version from the first rank's begin to the levels that it reached.",
         charts.timeline(history), ""),
        ("Blocked, and time to each level",
         "From the first rank's begin: how long the program waited, until the version was on disk "
         f"and, with several nodes, elsewhere. {_snapshots(history)}",
         charts.level_times(history), ""),
        ("I/O time of each rank",
         "Each point is a rank, of the version that is chosen." + _chosen(history)
         + (strategy_page.IO if history.by_ranks else ""),
         charts.ranks(history), ""),
        *strategy_page.parts(history, _table),
        ("Bandwidth", "What the program sees, what the disk does. " + limit,
         charts.bandwidths(history, probe), ""),
        ("Failures", DIED if history.failures else "", None, _failures(history)),
        ("Restarts", "", None, _stands(history) + _restarts(history) + _refusals(history)),
        ("Time lost", _lost(times), charts.time_lost(times), ""),
    ]  # fmt: skip
    several = len(history.nodes) > 1
    if several:
        parts[2:2] = [
            ("Nodes", node_page.of_nodes(history), node_charts.nodes(history),
             node_page.nodes(history, _table)),
            ("The last node of each version", node_page.of_versions(history), None,
             node_page.versions(history, _table)),
        ]  # fmt: skip
    if several or history.lost_nodes:
        parts[-1:-1] = [("Lost nodes", "", None, node_page.losses(history, _table))]
    if copies := node_page.copies(history, _table):
        parts[-1:-1] = [("Copies and repairs", "", None, copies)]
    return parts


def _files(profile: Profile) -> tuple:
    shown = "".join(_table(head, rows) for head, rows in files_page.tables(profile))
    return files_page.TITLE, files_page.words(profile), None, shown


def _unread(unreadable: list[str]) -> str:
    if not unreadable:
        return ""
    shown = "".join(f"<li>{html.escape(one)}</li>" for one in unreadable[:20])
    lines, are = counted(len(unreadable), "line"), plural(len(unreadable), "is", "are")
    return f'<div class="warn"><p>{lines} of the log could not be read and {are} left out:</p><ul>{shown}</ul></div>'


def render(
    history: History | None,
    times: Times | None,
    probe: dict | None,
    unreadable: list[str],
    profile: Profile | None = None,
    job: str = "",
) -> str:
    """The page. `history` has at least one captured version; None: of `job` only the captured files
    of `profile` are known. `probe`: memory and disk in B/s, or None.
    """
    parts = _parts(history, times, probe) if history else []
    if profile is not None:
        parts.append(_files(profile))
    body = "".join(_section(number, *part) for number, part in enumerate(parts))
    figures = {f"plot{number}": part[2] for number, part in enumerate(parts) if part[2] is not None}
    data = json.dumps(figures, allow_nan=False).replace("<", "\\u003c")
    notes = node_page.notes(history) if history else []
    warning = "".join(f'<div class="warn">{_paragraph(one)}</div>' for one in notes)
    warning += _unread(unreadable)
    summary = html.escape(_summary(history)) if history else ""
    job = html.escape(history.job if history else job)
    return (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{job}: '
            f'report</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<link rel="icon" '
            f'href="data:,"><style>{STYLE}</style><script>{get_plotlyjs()}</script></head><body>'
            f"<h1>{job}</h1><p>{summary}</p>{warning}{body}"
            f'<script>const figures={data};for(const id in figures)'
            f"Plotly.newPlot(id,figures[id].data,figures[id].layout,{{responsive:true,displaylogo:false,modeBarButtonsToRemove:['select2d','lasso2d','autoScale2d','zoomIn2d','zoomOut2d']}});"
            f"document.body.dataset.drawn=Object.keys(figures).length;</script></body></html>\n")  # fmt: skip
