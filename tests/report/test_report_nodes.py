"""`backstay report` over the logs of several nodes: merging, clocks, the table, bad input, the page
in a real browser.
"""

import contextlib
import io
import json
import os
import pathlib
import random
import re
import sys
from unittest import mock

import browser
import made_log
import made_nodes
import pytest
from backstay.cli.__main__ import main
from backstay.report import charts, events, history, node_charts, node_page, nodes, spread


def report(folder, *words):
    """Without a log of this node."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["backstay", "report", "lj", "--dir", str(folder / "here"), "-o",
            str(folder / "report.html"), *map(str, words)]
    cache = mock.patch.dict("os.environ", XDG_CACHE_HOME=str(folder / "cache"))
    with cache, mock.patch.object(sys, "argv",
                                  argv), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main()
    assert "Traceback" not in err.getvalue()
    return code, out.getvalue(), err.getvalue()


def history_of(folder, logs):
    log = events.read(None, "lj", [made_nodes.write(folder / "logs", logs)])
    assert log.unreadable == []
    return history.build("lj", log.events)


def built(folder, **how):
    return history_of(folder, made_nodes.made(**how))


def test_levels_count_once_the_last_node_has_them(tmp_path):
    made = built(tmp_path)
    assert [v.number for v in made.captured] == list(range(1, 11)) and made.nodes == ["n0", "n1",
        "n2", "n3"]
    first = made.captured[0]
    assert first.parts.keys() == {"n0", "n1", "n2", "n3"} and len(made.captured[-1].parts) == 3
    for level in ("captured_s", "local_s", "protected_s"):
        assert getattr(first, level) == max(getattr(part, level) for part in first.parts.values())
    assert first.bytes == 4 * made_nodes.RANKS * made_nodes.BYTES and [r.rank for r
        in first.ranks] == list(range(8))
    assert first.blocked_s == pytest.approx(max(r.seconds for r in first.ranks if r.node == "n2"))
    assert first.writing_s == pytest.approx(first.local_s - first.captured_s, abs=0.02)


def test_the_slowest_node_is_named(tmp_path):
    made = built(tmp_path)
    for version in made.captured:
        assert spread.of(version, "written").node == spread.of(version, "blocked").node == "n2"
        assert 0.6 < spread.of(version, "written").apart_s < 0.9
    node, rank, _, seconds = spread.longest_wait(made)
    assert node == "n2" and rank in (2, 4) and seconds > 0.08
    sums = {one.node: one for one in spread.nodes(made)}
    assert sums["n2"].slowest == {"blocked": 10, "captured": 10,
                                  "written": 10} and not any(sums["n0"].slowest.values())
    assert sums["n2"].bandwidth < sums["n0"].bandwidth / 3
    assert [(one.restarts, one.failures, one.lost, one.newest) for one in sums.values()] == [(1, 0,
        1, 10), (0, 1, 1, 6), (1, 0, 0, 10), (1, 0, 1, 10)]
    assert {one.level for one in sums.values()} == {"protected"}


def test_a_loss_that_all_tell_counts_once(tmp_path):
    made = built(tmp_path)
    assert [(one.node, len(one.told), one.back_s is None) for one in made.losses] == [("n3", 2,
        False), ("n0", 1, False), ("n1", 3, True)]
    failure, = made.failures
    assert failure.lost == ["n1"] and failure.ranks == [0, 1, 4, 5, 6,
                                                        7] and failure.restart.version == 6
    restart, = made.restarts
    assert (restart.source, len(restart.nodes), restart.bytes) == ("replica", 3,
        3 * made_nodes.RANKS * made_nodes.BYTES)
    again = next(one for one in made.marks if one.kind == "reprotected")
    assert again.of == {"n0", "n2",
                        "n3"} and again.seconds == pytest.approx(1.3) and again.bytes == restart.bytes
    assert [row[-1] for row in rows_of(node_page.copies, made)
            if row[3] == "has its copies again"] == ["1.3 s"]
    whose = {one.kind: one.of for one in made.marks}
    assert whose["protect_failed"] == whose["repaired"] == {"n3"}, "node 0 of the second run is host n3"


def test_an_overtaken_version_is_told_and_is_no_trouble(tmp_path):
    logs = made_nodes.made()
    logs.say("overtaken", 126.5, 2, 1, "n2", version=9, of=1, why="no such file")
    made = history_of(tmp_path, logs)
    mark, = (one for one in made.marks if one.kind == "overtaken")
    assert (mark.version, mark.of, mark.why) == (9, {"n2"}, "no such file")
    colours = {one["name"]: one["marker"]["color"] for one in charts.timeline(made)["data"]
               if "marker" in one}
    assert colours["overtaken"] == "#777777" != colours["protect failed"]
    assert "overtaken by newer ones" in node_page.copies(made, lambda head, rows: f"{rows}")


class Few(made_nodes.Logs):
    """Logs of a few nodes, made event by event: node 0 of each run is n0."""

    def one(self, kind, at, number, run=1, version=1, **fields):
        self.say(kind, at, run, number, f"n{number}", version=version, **fields)

    def captured(self, at, number, **which):
        self.one("captured", at, number, bytes=100, seconds=0.1, ranks=[], **which)

    def local(self, at, number, **which):
        self.one("local", at, number, bytes=100, seconds=0.2, **which)

    def restored(self, at, number, place, seconds):
        self.one("restored", at, number, bytes=100, seconds=seconds, **{"from": place})


def test_a_restart_is_that_of_the_last_and_farthest_node(tmp_path):
    logs = Few(3)
    logs.restored(0.9, 0, "local", 0.9)
    logs.restored(1.0, 1, "replica", 0.5)
    logs.restored(1.1, 2, "pool", 0.1)
    logs.restored(9.0, 1, "local", 0.3)  # the same run once more
    first, second = history_of(tmp_path, logs).restarts
    assert (first.source, first.seconds, first.bytes, first.nodes) == ("replica", 0.9, 300,
        ["node 0", "node 1", "node 2"])
    assert (second.source, second.seconds, second.nodes) == ("local", 0.3, ["node 1"])


def test_a_version_that_is_tried_again_is_another_one(tmp_path):
    """The first time one node did not come to capture it."""
    logs = Few(2)
    for number in (0, 1):
        for at in (1.0, 5.0, 9.0):
            logs.one("capture_begin", at, number)
            if at > 1 or number == 0:
                logs.captured(at + 0.1, number)
    made = history_of(tmp_path, logs)
    first, second, third = made.versions
    assert (first.captured_s, first.bytes, set(first.parts)) == (None, 0, {"node 0", "node 1"})
    assert (second.captured_s, second.bytes, third.bytes) == (pytest.approx(4.1, abs=1e-5), 200,
        200)
    assert node_charts.nodes(made)["data"][0]["x"] == ["1 (1)", "1 (2)"]


def test_a_log_that_lacks_the_capture_counts_with_what_it_tells(tmp_path):
    """It begins, or was copied, in the middle. A level holds for all, and may be announced after
    the run.
    """
    logs = Few(3)
    logs.captured(1.0, 0)
    logs.one("capture_begin", 0.95, 1)  # and no more
    for number, at in ((0, 1.4), (2, 1.5)):  # nothing of it before
        logs.local(at, number)
    logs.one("durable", 50.0, 0, run=2, bytes=100, seconds=1.0)
    made = history_of(tmp_path, logs)
    version, = made.captured
    assert set(version.parts) == {"node 0", "node 1"} and version.captured_s == pytest.approx(0.05,
        abs=1e-5)
    assert version.local_s == pytest.approx(0.55, abs=1e-5), "the last one that has it"
    assert version.durable_s == pytest.approx(49.05, abs=1e-5)
    assert spread.of(version, "captured") is None, "one node is not slower than itself"
    assert spread.nodes(made)[0].bandwidth == pytest.approx(100
        / 0.2), "until local, as its log does not say when it was written"


def test_levels_are_in_order_where_clocks_differ_by_next_to_nothing(tmp_path):
    logs = Few(2)
    for number, at in ((0, 1.0), (1, 1.2005)):
        logs.captured(at, number)
        logs.local(1.2, number)
    made = history_of(tmp_path, logs)
    version, = made.captured
    assert made.clocks == [] and version.captured_s == version.local_s == pytest.approx(0.2005,
        abs=1e-5)


def test_what_one_node_tells_twice_happened_twice(tmp_path):
    """Except the events about other nodes' parts."""
    logs = Few(2)
    for at in (1.0, 2.0):
        for number in (0, 1):
            logs.one("removed", at, number)
            logs.one("protect_failed", at + 0.5, number, of=round(at) - 1, why="no room")
    made = history_of(tmp_path, logs)
    assert [(one.kind, len(one.nodes)) for one in made.marks] == [("removed", 2),
        ("protect_failed", 2), ("removed", 2)]
    assert made.marks[1].of == {"node 0", "node 1"}


def test_a_node_may_be_lost_again(tmp_path):
    """Ranks were lost too, so that it is not the end of the run."""
    logs = Few(2)
    logs.say("rank_left", 0.5, 1, 0, "n0", rank=5, lost=True)
    for number, at in ((0, 2.0), (1, 2.5)):
        logs.say("nodes_back", at, 1, number, f"n{number}", nodes=[2])
    for number, at in ((0, 1.0), (1, 3.0), (0, 3.2), (1, 6.0)):
        logs.say("nodes_lost", at, 1, number, f"n{number}", nodes=[2])
    lost = [(*(round(at + 0.5, 3) for at in (one.at_s, one.last_s)), one.told) for one
            in history_of(tmp_path, logs).lost_nodes]
    assert lost == [(1.0, 1.0, ["node 0"]), (3.0, 3.2, ["node 1", "node 0"]),
                    (6.0, 6.0, ["node 1"])]
    assert history_of(tmp_path, logs).losses[0].back_s == pytest.approx(1.5,
        abs=1e-5), "heard of by the first one"


def test_agents_that_end_after_the_run_are_not_lost(tmp_path):
    logs = made_nodes.made()
    for order, host in enumerate(["n3", "n2", "n0"]):
        for rank in range(made_nodes.RANKS):
            logs.say("rank_left", 130.0, 2, order, host, rank=made_nodes.RANKS * order + rank,
                     lost=False)
    logs.say("nodes_lost", 160.0, 2, 0, "n3", nodes=[1, 2])
    made = history_of(tmp_path, logs)
    assert [one.node for one in made.lost_nodes] == ["n3", "n0", "n1"] and len(made.losses) == 5
    assert sum(one.lost for one in spread.nodes(made)) == 3


def test_a_higher_level_includes_the_lower_ones(tmp_path):
    """A version that is protected soon may be announced so at once."""
    logs = made_nodes.made()
    logs.lines = {name: [one for one in lines if '"event": "local"' not in one] for name,
                  lines in logs.lines.items()}
    assert report(tmp_path, "--log", made_nodes.write(tmp_path / "logs", logs))[0] == 0
    assert "10 versions captured, 10 local, 10 protected" in (tmp_path
        / "report.html").read_text("utf-8")


def test_a_log_given_twice_counts_once(tmp_path):
    logs = made_nodes.write(tmp_path / "logs", made_nodes.made())
    made_log.write(tmp_path / "here" / "lj", (logs / "n0.jsonl").read_text().splitlines())
    _, once, _ = report(tmp_path, "--log", logs, "--json")
    code, twice, err = report(tmp_path, "--log", logs, "--log", logs / "n1.jsonl", "--log",
                              tmp_path / "here" / "lj", "--json")
    assert (code, err) == (0, "") and twice == once


def test_folders_of_logs(tmp_path):
    """A folder of logs, one of folders, a file, and this node's own log beside them: the same."""
    logs = made_nodes.write(tmp_path / "logs", made_nodes.made())
    expected = json.loads(report(tmp_path, "--log", logs, "--json")[1])
    for name in ("n1", "n2"):
        (tmp_path / "nested" / name).mkdir(parents=True)
        (logs / f"{name}.jsonl").rename(tmp_path / "nested" / name / "events.jsonl")
    (tmp_path / "here" / "lj").mkdir(parents=True)
    (logs / "n0.jsonl").rename(tmp_path / "here" / "lj" / "events.jsonl")
    code, out, err = report(tmp_path, "--log", tmp_path / "nested", "--log", logs / "n3.jsonl",
                            "--json")
    assert (code, err) == (0, "") and json.loads(out) == expected
    wait, restart = expected["longest_wait"], expected["restarts_by_node"][0]
    assert wait["node"] == "n2" and wait["seconds"] > 0.08 and restart["source"] == "replica"
    assert [one["kind"] for one in expected["marks"]] == ["reprotect_begin", "reprotected",
        "protect_failed", "repaired"]
    assert expected["marks"][-1]["of"] == ["n3"]


def test_logs_that_are_not_here_are_named(tmp_path):
    logs = made_nodes.write(tmp_path / "logs", made_nodes.made())
    code, out, _ = report(tmp_path, "--log", logs / "n0.jsonl", "--log", logs / "n2.jsonl",
                          "--json")
    found = json.loads(out)
    assert code == 0 and found["nodes_without_log"] == ["node 0", "node 1",
                                                        "node 3"], "numbers, as no log has the host's name"
    assert "The logs of 3 nodes are not here: node 0, node 1, node 3 (lost: node 1, node 3)" in (tmp_path / "report.html").read_text("utf-8")
    assert [one["node"] for one in found["lost_nodes"]] == ["node 3", "node 1"]


def test_names_that_do_not_name_one_node_are_not_used_alone(tmp_path):
    logs = Few(4)
    for number, host in enumerate(["same", "same", "<b>", "other"]):
        logs.say("run_begin", 0.0, 1, number, f"n{number}", ranks=4, nodes=4, host=host)
    assert history_of(tmp_path, logs).nodes == ["node 2", "other", "same (node 0)", "same (node 1)"]
    assert nodes.listed(["n10", "n2", "n1", "n4", "n3"]) == "n1, n2, n3 and 2 more"


def test_without_names_of_hosts_nodes_have_their_numbers(tmp_path):
    assert built(tmp_path, tell_hosts=False).nodes == ["node 0", "node 1", "node 2", "node 3"]


@pytest.mark.parametrize("ahead", [3600.0, -40.0, 5.0, -1.5])
def test_a_clock_that_is_apart_is_said_and_put_right(tmp_path, ahead):
    right, wrong = built(tmp_path / "right"), built(tmp_path / "wrong", clocks={"n3": ahead})
    assert right.clocks == [] and {(one.node, one.proven) for one in wrong.clocks} == {("n3", True)}
    assert all(one.ahead_s == pytest.approx(ahead, abs=0.02) for one
               in wrong.clocks) and len(wrong.clocks) == 2
    for one, other in zip(right.captured, wrong.captured, strict=True):
        assert (other.begin_s, other.captured_s,
                other.local_s) == pytest.approx((one.begin_s, one.captured_s, one.local_s),
                                                abs=0.05)
    said = node_page.notes(wrong)
    way = "ahead of" if ahead > 0 else "behind"
    assert len(said) == 1 and f"the clock of n3 seems, in 2 runs up to" in said[0] and f"{way} the others'" in said[0]
    assert wrong.end_s == pytest.approx(right.end_s, abs=0.05)


@pytest.mark.parametrize("ahead", [0.5, -0.5])
def test_what_a_clock_may_be_apart_unnoticed_draws_no_nonsense(tmp_path, ahead):
    """Less than a version takes to become local."""
    made = built(tmp_path, clocks={"n3": ahead})
    assert made.clocks == [] and all(v.begin_s <= v.captured_s <= v.local_s <= v.protected_s for v
                                     in made.captured)


def test_of_two_clocks_that_differ_the_first_ones_is_kept(tmp_path):
    logs = made_nodes.made(hosts=4, clocks={"n2": 30.0})
    logs.lines = {name: logs.lines[name] for name in ("n0", "n2")}
    made = history_of(tmp_path, logs)
    assert {one.node for one in made.clocks if one.run.endswith("1")} == {"n2"}


def test_who_was_only_told_late_is_not_moved(tmp_path):
    """Its own captures fit the others' levels: so its clock may be right."""
    logs = made_nodes.made()
    late = [json.loads(one) for one in logs.lines["n3"]]
    for one in late:
        one["t_ns"] += int(2.5e9) if one["event"] in ("local", "protected") else 0
    logs.lines["n3"] = [json.dumps(one) for one in late]
    made = history_of(tmp_path, logs)
    assert {(one.node, one.proven) for one in made.clocks} == {("n3", False)}
    assert made.captured[0].local_s == made.captured[0].parts["n3"].local_s > 3
    assert "The clock of n3 is, in 2 runs up to 2.5 s ahead of the others'" in node_page.notes(made)[0]


def test_a_level_without_a_telling_node_bounds_the_clock(tmp_path):
    """A log that was copied early: captured, and no level. The others received the level before
    that, by their clocks.
    """
    logs = made_nodes.made(clocks={"n3": 20.0})
    logs.lines["n3"] = [one for one in logs.lines["n3"] if '"local"' not in one
                        and '"protected"' not in one]
    made = history_of(tmp_path, logs)
    assert {(one.node, one.versions, one.proven) for one in made.clocks} == {("n3", 0, True)}
    assert all(18 < one.ahead_s <= 20 for one
               in made.clocks) and "at least" in node_page.notes(made)[0]
    assert all(v.local_s >= v.captured_s for v in made.captured)


def test_of_two_clocks_that_of_the_node_that_was_told_more_is_kept(tmp_path):
    """Durable reaches one node after the other, and a repeated level says nothing about clocks."""
    logs = Few(2, clocks={"n0": 30.0})
    for number, levels in ((0, ("local",)), (1, ("local", "protected"))):
        logs.captured(1.0, number)
        for level in levels:
            logs.one(level, 1.4, number, bytes=100, seconds=0.4)
        logs.one("durable", 3.0 + 30 * number, number, bytes=100, seconds=0.4)
    logs.local(20.0, 1)
    clock, = history_of(tmp_path, logs).clocks
    assert (clock.node, clock.versions, clock.proven) == ("node 0", 1,
        True) and clock.ahead_s == pytest.approx(30, abs=0.01)


def test_a_clock_is_apart_by_no_more_than_can_be(tmp_path):
    """Most levels came late to a node whose clock is wrong as well: the one that came in time
    bounds it.
    """
    logs = Few(3, clocks={"n2": 50.0})
    for version in range(1, 6):
        for number in range(3):
            logs.captured(10.0 * version, number, version=version)
            logs.local(10.0 * version + (5.4 if number == 2 and version > 1 else 0.4), number,
                       version=version)
    clock, = history_of(tmp_path, logs).clocks
    assert (clock.node, clock.proven) == ("node 2", True) and clock.ahead_s == pytest.approx(50.4,
        abs=0.01)


def test_many_clocks_are_not_all_said(tmp_path):
    said = node_page.notes(built(tmp_path, hosts=30,
                                 clocks={f"n{number}": 100.0 * number for number in range(4, 16)}))
    assert len(said) == 9 and said[-1] == "So do 4 more; `--json` has all."


def rows_of(part, made):
    """A table's rows."""
    found = []
    part(made, lambda head, rows: found.extend(rows) or "")
    return found


def test_many_versions_stay_readable(tmp_path):
    logs = Few(2)
    for version in range(1, 451):
        for number in (0, 1):
            logs.captured(float(version), number, version=version)
    made = history_of(tmp_path, logs)
    columns = node_charts.nodes(made)["data"][0]["x"]
    assert len(columns) == 150 and columns[-1] == "450"
    shown = rows_of(node_page.versions, made)
    assert (len(shown), shown[0][0], shown[-1][0]) == (30, 450, 421)


def test_long_tables_are_cut_but_name_who_was_lost(tmp_path, monkeypatch):
    made = built(tmp_path, hosts=6)
    for where, name in ((node_charts, "SHOWN_NODES"), (node_page, "SHOWN_ROWS"),
                        (charts, "SHOWN_LOSSES")):
        monkeypatch.setattr(where, name, 1)
    assert {row[0] for row in rows_of(node_page.nodes, made)} == {"n0", "n1", "n2",
        "n5"}, "the slowest one, and the lost ones"
    assert [row[1] for row in rows_of(node_page.losses, made)] == ["n5"]
    assert "2 more are left out" in node_page.losses(made, lambda head, rows: "")
    lines = {one["name"]: one["x"] for one in charts.timeline(made)["data"]}
    assert len(lines["node lost"]) == len(lines["node back"]) == 3, "one line"


@pytest.mark.parametrize("hosts, traces, rows", [(4, 3, 4), (8, 7, 8), (9, 1, 9), (70, 1, 64)])
def test_many_nodes_stay_readable(tmp_path, monkeypatch, hosts, traces, rows):
    monkeypatch.setattr(made_nodes, "SLOW", hosts - 1)
    made = built(tmp_path, hosts=hosts)
    assert made.nodes == [f"n{number}" for number in range(hosts)]
    ranks = charts.ranks(made)
    used = [one for one in ranks["data"] if one["x"]]
    assert len(used) == traces and sum(len(one["x"]) for one in used) == made_nodes.RANKS * (hosts
        - 1)
    chart = node_charts.nodes(made)
    assert len(chart["data"][0]["y"]) == len(chart["data"][0]["z"]) == rows and f"n{hosts - 1}" in chart["data"][0]["y"]
    measures = [one["label"] for one in chart["layout"]["updatemenus"][0]["buttons"]]
    assert "until it had level protected" in measures and "until it had level durable" not in measures, "no node had"
    assert ("those 64 that were slowest most often" in node_page.of_nodes(made)) == (hosts > 64)


@browser.needed
def test_the_page_of_several_nodes(tmp_path):
    logs = made_nodes.write(tmp_path / "logs", made_nodes.made(clocks={"n3": 12.5}))
    code, out, err = report(tmp_path, "--log", logs, "--json")
    found = json.loads(out)
    assert (code, err) == (0, "") and [one["node"] for one in found["nodes"]] == ["n0", "n1", "n2",
        "n3"]
    assert [one["slowest"]["written"]["node"] for one in found["versions_by_node"]] == ["n2"] * 10
    file = tmp_path / "report.html"
    choose = ("const p = Array.from(document.querySelectorAll('.plot')).find(p => p.data[0].type "
              "== 'heatmap');"
              "const b = p.layout.updatemenus[0].buttons[1];"
              "Plotly.restyle(p, ...b.args).then(() => { document.body.dataset.chosen = b.label + "
              "': ' + p.data[0].z[2][9]; });")  # fmt: skip
    file.write_text(file.read_text("utf-8").replace("</body>",
                                                    f"<script>{choose}</script></body>"),
                                                    encoding="utf-8")
    text = browser.elements(file, tmp_path / "profile")
    assert 'data-drawn="6"' in text and "the clock of n3 seems" in text
    seen = re.search(r'data-chosen="longest wait of a rank: ([0-9.]+)"', text)
    assert float(seen[1]) == pytest.approx(1000
                                           * found["versions_by_node"][9]["slowest"]["blocked"]["seconds"], abs=0.01)
    rows = re.findall(r"<tr><td[^>]*>(n[0-9])</td><td[^>]*>([0-9.]+ MB)</td>", text)
    assert rows == [("n0", "671.1 MB"), ("n1", "402.7 MB"), ("n2", "671.1 MB"), ("n3", "671.1 MB")]
    assert len(browser.picture(file, tmp_path / "profile",
                               (1100, 4600))) > 100_000, "an almost empty picture"


def test_a_page_of_one_node_has_no_tables_of_nodes(tmp_path):
    made_log.write(tmp_path / "here" / "lj")
    assert report(tmp_path)[0] == 0
    assert "<h2>Nodes</h2>" not in (tmp_path / "report.html").read_text("utf-8")


def other_job(folder):
    lines = [json.dumps({**one, "job": "heat"}) for one in made_log.events()[0]]
    made_log.write(folder, lines)
    return folder / "events.jsonl"


def in_file(folder, content):
    (folder / "log").write_bytes(content)
    return folder / "log"


def pipe(folder):
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def loop(folder):
    (folder / "loop").symlink_to("loop")
    return folder / "loop"


def no_logs(folder):
    (folder / "empty" / "er").mkdir(parents=True)
    return folder / "empty"


@pytest.mark.parametrize("bad, code, name, says", [
    (other_job, 2, "mismatch", "is the log of job heat, not of lj"),
    (lambda folder: in_file(folder, b"PNG\0\n\xff\n"), 1, "format",
     "holds no event that can be read; {0}:1: not JSON"),
    (pipe, 1, "format", "is no regular file; copy the log into one"),
    (lambda folder: pathlib.Path("/dev/null"), 1, "format", "is no regular file"),
    (loop, 1, "io", "Too many levels of symbolic links"),
    (lambda folder: folder / "none", 3, "not_found", "no such file or folder"),
    (no_logs, 3, "not_found", "no event log (*.jsonl) in this folder")])  # fmt: skip
def test_what_is_no_log_of_the_job_is_refused(tmp_path, bad, code, name, says):
    """Although the others are good."""
    logs, file = made_nodes.write(tmp_path / "logs", made_nodes.made()), bad(tmp_path)
    found = report(tmp_path, "--log", logs, "--log", file, "--json")
    error = json.loads(found[1])["error"]
    assert (found[0], error["code"]) == (code,
                                         name) and says.format(file) in error["message"] and str(file) in error["message"]
    assert found[2].count("\n") == 1 and not (tmp_path / "report.html").exists()


@pytest.mark.parametrize("content", [b"", b'{"event":"local","t_n'])
def test_an_empty_log_among_others_is_named(tmp_path, content):
    logs, own = made_nodes.write(tmp_path / "logs",
                                 made_nodes.made()), tmp_path / "here" / "lj" / "events.jsonl"
    expected = json.loads(report(tmp_path, "--log", logs, "--json")[1])
    own.parent.mkdir(parents=True)
    for file in (own, logs / "empty.jsonl"):
        file.write_bytes(content)
    code, out, err = report(tmp_path, "--log", logs, "--json")
    assert code == 0 and all(f"{file}: is empty" in err for file in (own, logs / "empty.jsonl"))
    assert json.loads(out) == {**expected, "unreadable_lines": 2}
    code, out, err = report(tmp_path, "--log", logs / "empty.jsonl")
    assert code == 1 and "empty.jsonl: holds no event that can be read" in err


def test_half_a_last_line_and_lines_of_others_are_left_out(tmp_path):
    logs = made_nodes.write(tmp_path / "logs", made_nodes.made())
    expected = json.loads(report(tmp_path, "--log", logs, "--json")[1])
    with open(logs / "n1.jsonl", "a") as file:
        file.write(json.dumps({**made_log.events()[0][0], "job": "heat"})
                   + '\nwhat\n{"event":"local","t_n')
    code, out, err = report(tmp_path, "--log", logs, "--json")
    assert code == 0 and "n1.jsonl: 1 line of job heat" in err and re.search(
        r"n1.jsonl:[0-9]+: not JSON", err)
    assert json.loads(out) == {**expected, "unreadable_lines": 2}


def test_no_log_anywhere(tmp_path):
    assert report(tmp_path)[0] == 3
    (tmp_path / "here" / "lj").mkdir(parents=True)  # a version may be there without a log
    logs = made_nodes.write(tmp_path / "logs", made_nodes.made())
    assert report(tmp_path, "--log", logs)[0] == 0


def test_any_logs_give_a_page_or_one_line(tmp_path):
    """Lines that lie about times, nodes and versions."""
    seed, good = 20_261_122, 0
    rng, log = random.Random(seed), made_nodes.made()
    values = [0, 1, -1, 0.5, 1e18, 1.7e19, True, None, "", "n0", [], [0], [7], {}, 2**63]
    for number in range(40):
        broken = made_nodes.Logs(4)
        for name, lines in log.lines.items():
            for line in lines:
                one = json.loads(line)
                if rng.random() < 0.1:
                    one[rng.choice(list(one))] = rng.choice(values)
                if rng.random() < 0.05:
                    one["t_ns"] = one["t_ns"] + rng.randint(-(10**12),
                        10**12) if isinstance(one.get("t_ns"), int) else 5
                broken.lines[name] += [json.dumps(one)] * (rng.random() > 0.1)
        code, out, err = report(tmp_path, "--log", made_nodes.write(tmp_path / "logs", broken),
                                "--json")
        assert code in (0, 1, 3), f"seed {seed}, log {number}: {err}"
        json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
        good += code == 0
    assert good > 20
