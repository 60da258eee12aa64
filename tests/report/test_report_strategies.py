"""`backstay report` of a program whose ranks write their versions: the log of rank 0, in which
writers with a file each tell of a version at the next one, and of a restart little.
"""

import contextlib
import io
import json
import sys
from unittest import mock

import browser
import pytest
from backstay.cli.__main__ import main
from backstay.report import charts, events, history, page, strategy_page, times

T0_NS, RANKS, BYTES = 1_795_212_000_000_000_000, 8, 1_000_000


def event(kind, at_s, run="a", **fields):
    return {"event": kind, "t_ns": T0_NS + int(at_s * 1e9), "job": "wg", "run": run * 16, "node": 0,
            **fields}


def rank(number, at_s, writes):
    """A writer computes again after 0.1 s, and closes its file after 0.5 s."""
    times_s = ({"open_s": 0.05, "write_s": 0.4, "close_s": 0.05, "hand_over_s": 0.08, "wait_s": 0.0}
               if writes else {"open_s": 0.0, "write_s": 0.0, "close_s": 0.0,
                               "hand_over_s": 0.001 * number, "wait_s": 0.03})
    return {"rank": number, "bytes": BYTES, "begin_ns": T0_NS + int(at_s * 1e9),
            "end_ns": T0_NS + int((at_s + 0.1) * 1e9), **times_s, "writes": writes}


def version(number, at_s, told_s, each, run="a"):
    """Durable after 0.6 s; `told_s` after that rank 0 knows the times. A writer for `each` ranks.
    """
    ranks = [rank(one, at_s + 0.2 * (one >= RANKS // 2), one % each == 0) for one in range(RANKS)]
    return [event("capture_begin", at_s, run, version=number),
            event("durable", at_s + 0.8, run, version=number),
            event("captured", at_s + 0.8 + told_s, run, version=number, bytes=RANKS * BYTES,
                  seconds=0.3, ranks=ranks)]  # fmt: skip


def log(each=4):
    return [event("run_begin", 0, ranks=RANKS, nodes=1, host="vm", newest=0),
            event("restart_begin", 0.1, **{"from": "durable"}),
            *version(1, 1, 9, each), *version(2, 11, 9, each),
            event("run_begin", 30, "b", ranks=RANKS, nodes=1, host="vm", newest=2),
            event("restart_begin", 30.1, "b", **{"from": "durable"}),
            event("restored", 30.6, "b", version=2, **{"from": "durable"}),
            *version(3, 31, 1, each, "b"),
            event("run_end", 33, "b", how="finished")]  # fmt: skip


def keep(folder, lines):
    (folder / "wg").mkdir()
    (folder / "wg" / "events.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))


def built(folder, each=4):
    keep(folder, log(each))
    found = events.read(folder / "wg")
    assert found.unreadable == []
    return history.build("wg", found.events)


def test_captured_is_when_the_ranks_compute_again_not_when_rank_0_is_told(tmp_path):
    made = built(tmp_path)
    assert [(v.begin_s, v.captured_s, v.durable_s) for v in made.captured] == [
        (1, pytest.approx(1.3), pytest.approx(1.8)), (11, pytest.approx(11.3), pytest.approx(11.8)),
        (31, pytest.approx(31.3), pytest.approx(31.8))]
    assert made.by_ranks and made.captured[0].blocked_s == pytest.approx(0.1)
    restart, = made.restarts
    assert restart.seconds == pytest.approx(0.5) and restart.bytes == RANKS * BYTES


def test_writers_and_workers_are_apart(tmp_path):
    chart = charts.ranks(built(tmp_path))
    writers, workers = chart["data"]
    assert (writers["name"], writers["x"]) == ("writer", [0, 4])
    assert (workers["name"], workers["x"]) == ("worker", [1, 2, 3, 5, 6, 7])
    assert writers["y"] == pytest.approx([500, 500]) and workers["y"] == pytest.approx([100] * 6)
    assert writers["marker"]["color"] != workers["marker"]["color"]


def test_writing_over_time(tmp_path):
    chart = strategy_page.writing(built(tmp_path))
    assert chart["data"][0]["x"] == pytest.approx([0, 200, 500, 700])
    assert chart["data"][0]["y"] == [1, 2, 1, 0]
    buttons = chart["layout"]["updatemenus"][0]["buttons"]
    assert [one["label"] for one in buttons] == ["version 3", "version 2", "version 1"]


def test_the_perceived_bandwidth_is_that_of_the_paper(tmp_path):
    rows = []
    strategy_page.perceived(built(tmp_path), lambda _, found: rows.extend(found) or "")
    # 6 workers; the longest hand-over is that of rank 7.
    assert rows == [["8", "6", "3", "6 MB", "7 ms", "857.1 MB/s", "37 ms", "162.2 MB/s"]]


def test_bandwidth_and_levels_end_at_durable(tmp_path):
    made = built(tmp_path)
    real = charts.bandwidths(made, None)["data"][1]
    assert real["y"] == pytest.approx([RANKS * BYTES / 0.8] * 3)
    for chart in (charts.timeline(made), charts.level_times(made)):
        assert not any("local" in one["name"] for one in chart["data"])
    bars = charts.timeline(made)["data"][1]
    assert bars["x"] == pytest.approx([0.5] * 3)


def test_without_workers_there_is_no_such_table(tmp_path):
    made = built(tmp_path, each=1)
    titles = [one[0] for one in strategy_page.parts(made, lambda *_: "x")]
    assert titles == ["Writing over time"]
    text = page.render(made, times.account(made), None, [])
    assert "nobody writes down which ranks were lost" in text and "No rank was lost" not in text


@pytest.mark.parametrize("changed", [{"writes": 1}, {"write_s": "x"}, {"wait_s": -1},
                                     {"end_ns": 0}, {"hand_over_s": 1e300}])
def test_senseless_times_make_no_trouble(tmp_path, changed):
    lines = log()
    for one in lines:
        for part in one.get("ranks", []) if one["event"] == "captured" else []:
            part.update(changed)
    keep(tmp_path, lines)
    made = history.build("wg", events.read(tmp_path / "wg").events)
    assert "Versions and levels" in page.render(made, times.account(made), None, [])


def test_the_command_reads_the_folder_in_the_durable_directory(tmp_path):
    keep(tmp_path, log())
    out, err, file = io.StringIO(), io.StringIO(), tmp_path / "report.html"
    argv = ["backstay", "report", "wg", "--dir", str(tmp_path), "-o", str(file), "--json"]
    with mock.patch.object(sys, "argv", argv), mock.patch.dict(
            "os.environ", XDG_CACHE_HOME=str(tmp_path / "cache")), \
            contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        assert main() == 0
    found = json.loads(out.getvalue())
    assert (found["versions"], found["restarts"], found["unreadable_lines"]) == (3, 1, 0)
    assert err.getvalue() == "" and "Perceived bandwidth" in file.read_text()


@browser.needed
def test_a_browser_draws_it(tmp_path):
    made = built(tmp_path)
    file = tmp_path / "page.html"
    file.write_text(page.render(made, times.account(made), None, []))
    assert 'data-drawn="6"' in browser.elements(file, tmp_path / "profile")
