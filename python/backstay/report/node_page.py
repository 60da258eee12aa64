"""What the page says of several nodes: clocks, missing logs, tables."""

import html

from ..plan.words import counted, plural
from . import node_charts, spread, text
from .clocks import Clock
from .history import History, Version
from .nodes import listed

SHOWN_VERSIONS, SHOWN_ROWS, SHOWN_CLOCKS = 30, 100, 8
KINDS = {"protect_failed": "not protected", "overtaken": "overtaken by newer ones, not protected",
         "reprotect_begin": "lost a copy",
         "reprotected": "has its copies again", "repaired": "damaged, and repaired",
         "rebuilt": "made out of parity", "durable_failed": "not durable"}  # fmt: skip


def notes(history: History) -> list[str]:
    """What a reader should know before the pictures; sentences."""
    found = []
    if history.without_log:
        lost = {one.node for one in history.lost_nodes}
        died = [name for name in history.without_log if name in lost]
        which = f"The log of {listed(history.without_log)} is not here" if len(history.without_log) == 1 else (
            f"The logs of {counted(len(history.without_log), 'node')} are not here: "
            f"{listed(history.without_log)}")  # fmt: skip
        found.append(f"{which}{' (lost: ' + listed(died) + ')' if died else ''}; `--log` adds logs "
                     f"of other nodes.")
    return found + _clocks(history)


def _clocks(history: History) -> list[str]:
    worst: dict[tuple, list] = {}  # of a node: in how many runs, and the run where it is worst
    for clock in history.clocks:
        entry = worst.setdefault((clock.node, clock.proven), [0, clock])
        entry[0] += 1
        entry[1] = max(entry[1], clock, key=lambda one: abs(one.ahead_s))
    words = [_of_clock(clock, runs) for runs, clock in worst.values()]
    left = len(words) - SHOWN_CLOCKS
    return words[:SHOWN_CLOCKS] + ([f"So do {counted(left, 'more', 'more')}; `--json` has all."]
                                   if left > 0 else [])


def _of_clock(clock: Clock, runs: int) -> str:
    by = f"{text.time(abs(clock.ahead_s))} {'ahead of' if clock.ahead_s > 0 else 'behind'} the others'"
    often = f", in {runs} runs up to" if runs > 1 else ""
    if not clock.proven:
        return f"The clock of {clock.node} is{often} {by}, or it received the levels that late or early."
    seen = f" ({counted(clock.versions, 'level')} that all received)" if clock.versions else " at least"
    return f"The logs disagree: the clock of {clock.node} seems{often} {by}{seen}. Its times were moved by that much here."


def _slowest(version: Version, measure: str) -> str:
    found = spread.of(version, measure)
    return "" if found is None else f"{found.node}, {text.time(found.apart_s)} apart"


def _reached(version: Version, at_s: float | None) -> str:
    return "" if at_s is None else text.time(at_s - version.begin_s)


def versions(history: History, table) -> str:
    """The newest versions: a level is reached when the last node has it."""
    shown = history.captured[::-1][:SHOWN_VERSIONS]
    rows = [[v.number, _reached(v, v.captured_s), _slowest(v, "captured"), _slowest(v, "written"),
             _slowest(v, "blocked"),
             # fmt: skip.
             *(_reached(v, at) for at in (v.local_s, v.protected_s, v.durable_s))] for v in shown]
    return table(["version", "captured", "captured last", "slowest to its disk", "waited longest",
                  "local", "protected", "durable"], rows)


def of_versions(history: History) -> str:
    """The words above that table."""
    more = "" if len(history.captured) <= SHOWN_VERSIONS else f" The newest {SHOWN_VERSIONS} of {len(history.captured)}."
    return (f"From the first rank's begin until the last node had it. Beside it the slowest node, "
            f"and how much longer it took than the fastest.{more}")


def nodes(history: History, table) -> str:
    sums = spread.nodes(history)
    chosen = set(node_charts.chosen_nodes(history)) | {one.node for one in sums if one.lost
                                                       or one.failures}
    rows = [[one.node, text.size(one.bytes),
             "" if one.bandwidth is None else f"{text.size(one.bandwidth)}/s",
             "" if one.newest is None else f"{one.newest} {one.level}",
             f"{one.slowest['captured']} / {one.slowest['written']}",
             "" if one.waited_version is None else text.time(one.waited_s),
             # fmt: skip.
             one.restarts, one.failures, one.lost] for one in sums if one.node in chosen]
    head = ["node", "captured", "to its disk", "newest version", "slowest to capture / disk",
            "longest wait", "restarts", "failures", "times lost"]
    return table(head, rows)


def of_nodes(history: History) -> str:
    shown = len(node_charts.chosen_nodes(history))
    few = "" if shown == len(history.nodes) else f" Of {counted(len(history.nodes), 'node')} those {shown} that were slowest most often; `--json` has all."
    wait = spread.longest_wait(history)
    longest = "" if wait is None else f" Rank {wait[1]} on {wait[0]} waited longest: {text.time(wait[3])} for version {wait[2]}."
    return f"Each cell is a node's part of a version, by that node's own clock.{longest} A failure counts for the node that was lost, else for that of the rank that was lost first.{few}"


def losses(history: History, table) -> str:
    rows = [[text.time(one.at_s), one.node, f"{listed(one.told)}",
             text.time(one.last_s - one.at_s) if len(one.told) > 1 else "",
             "no" if one.back_s is None else f"after {text.time(one.back_s - one.at_s)}"] for one
             in history.lost_nodes]  # fmt: skip
    if not rows:
        return "<p>No node was lost.</p>"
    return table(["after", "node", "missed by", "the last one later by", "came back"],
                 rows[:SHOWN_ROWS]) + _cut(len(rows))


def copies(history: History, table) -> str:
    """Empty if nothing happened to copies."""
    marks = [one for one in history.marks if one.kind in KINDS]
    rows = [[text.time(one.at_s), one.version, listed(one.of) if one.of else "", KINDS[one.kind],
             listed(one.nodes),
             text.time(one.seconds) if one.kind == "reprotected" else one.why] for one
             in marks]  # fmt: skip
    return table(["after", "version", "part of", "what", "reported by", "took, or why"],
                 rows[:SHOWN_ROWS]) + _cut(len(rows)) if rows else ""


def _cut(rows: int) -> str:
    left = rows - SHOWN_ROWS
    return "" if left <= 0 else f"<p>{html.escape(counted(left, 'more', 'more'))} {plural(left, 'is', 'are')} left out; <code>--json</code> has all.</p>"
