"""`backstay report` over the logs of several nodes: merging, clocks, the table, bad input, the page in a real browser."""

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
from backstay.report import charts, events, history, node_charts, node_page, spread


def report(folder, *words):
    """Without a log of this node."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["backstay", "report", "lj", "--dir", str(folder / "here"), "-o", str(folder / "report.html"), *map(str, words)]
    cache = mock.patch.dict("os.environ", XDG_CACHE_HOME=str(folder / "cache"))
    with cache, mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main()
    assert "Traceback" not in err.getvalue()
    return code, out.getvalue(), err.getvalue()


def built(folder, **how):
    log = events.read(None, "lj", [made_nodes.write(folder / "logs", made_nodes.made(**how))])
    assert log.unreadable == []
    return history.build("lj", log.events)


def test_levels_count_once_the_last_node_has_them(tmp_path):
    made = built(tmp_path)
    assert [v.number for v in made.captured] == list(range(1, 11)) and made.nodes == ["n0", "n1", "n2", "n3"]
    first = made.captured[0]
    assert first.parts.keys() == {"n0", "n1", "n2", "n3"} and len(made.captured[-1].parts) == 3
    for level in ("captured_s", "local_s", "protected_s"):
        assert getattr(first, level) == max(getattr(part, level) for part in first.parts.values())
    assert first.bytes == 4 * made_nodes.RANKS * made_nodes.BYTES and [r.rank for r in first.ranks] == list(range(8))
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
    assert sums["n2"].slowest == {"blocked": 10, "captured": 10, "written": 10} and not any(sums["n0"].slowest.values())
    assert sums["n2"].bandwidth < sums["n0"].bandwidth / 3
    assert [(one.restarts, one.failures, one.lost, one.newest) for one in sums.values()] == [(1, 0, 1, 10), (0, 1, 1, 6), (1, 0, 0, 10), (1, 0, 1, 10)]


def test_a_loss_that_all_tell_counts_once(tmp_path):
    made = built(tmp_path)
    assert [(one.node, len(one.told), one.back_s is None) for one in made.losses] == [("n3", 2, False), ("n0", 1, False), ("n1", 3, True)]
    failure, = made.failures
    assert failure.lost == ["n1"] and failure.ranks == [0, 1, 4, 5, 6, 7] and failure.restart.version == 6
    restart, = made.restarts
    assert (restart.source, len(restart.nodes), restart.bytes) == ("replica", 3, 3 * made_nodes.RANKS * made_nodes.BYTES)
    again = next(one for one in made.marks if one.kind == "reprotected")
    assert again.of == {"n0", "n2", "n3"} and again.seconds == pytest.approx(1.3) and again.bytes == restart.bytes
    whose = {one.kind: one.of for one in made.marks}
    assert whose["protect_failed"] == whose["repaired"] == {"n3"}, "node 0 of the second run is host n3"


def test_an_overtaken_version_is_told_and_is_no_trouble(tmp_path):
    logs = made_nodes.made()
    logs.say("overtaken", 126.5, 2, 1, "n2", version=9, of=1, why="no such file")
    made = history.build("lj", events.read(None, "lj", [made_nodes.write(tmp_path / "logs", logs)]).events)
    mark, = (one for one in made.marks if one.kind == "overtaken")
    assert (mark.version, mark.of, mark.why) == (9, {"n2"}, "no such file")
    colours = {one["name"]: one["marker"]["color"] for one in charts.timeline(made)["data"] if "marker" in one}
    assert colours["overtaken"] == "#777777" != colours["protect failed"]
    assert "overtaken by newer ones" in node_page.copies(made, lambda head, rows: f"{rows}")


def test_agents_that_end_after_the_run_are_not_lost(tmp_path):
    logs = made_nodes.made()
    for order, host in enumerate(["n3", "n2", "n0"]):
        for rank in range(made_nodes.RANKS):
            logs.say("rank_left", 130.0, 2, order, host, rank=made_nodes.RANKS * order + rank, lost=False)
    logs.say("nodes_lost", 160.0, 2, 0, "n3", nodes=[1, 2])
    made = history.build("lj", events.read(None, "lj", [made_nodes.write(tmp_path / "logs", logs)]).events)
    assert [one.node for one in made.lost_nodes] == ["n3", "n0", "n1"] and len(made.losses) == 5
    assert sum(one.lost for one in spread.nodes(made)) == 3


def test_a_higher_level_includes_the_lower_ones(tmp_path):
    """A version that is protected soon may be told so at once."""
    logs = made_nodes.made()
    logs.lines = {name: [one for one in lines if '"event": "local"' not in one] for name, lines in logs.lines.items()}
    assert report(tmp_path, "--log", made_nodes.write(tmp_path / "logs", logs))[0] == 0
    assert "10 versions captured, 10 local, 10 protected" in (tmp_path / "report.html").read_text("utf-8")


def test_a_log_given_twice_counts_once(tmp_path):
    logs = made_nodes.write(tmp_path / "logs", made_nodes.made())
    made_log.write(tmp_path / "here" / "lj", (logs / "n0.jsonl").read_text().splitlines())
    _, once, _ = report(tmp_path, "--log", logs, "--json")
    code, twice, err = report(tmp_path, "--log", logs, "--log", logs / "n1.jsonl", "--log", tmp_path / "here" / "lj", "--json")
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
    code, out, err = report(tmp_path, "--log", tmp_path / "nested", "--log", logs / "n3.jsonl", "--json")
    assert (code, err) == (0, "") and json.loads(out) == expected


def test_logs_that_are_not_here_are_named(tmp_path):
    logs = made_nodes.write(tmp_path / "logs", made_nodes.made())
    code, out, _ = report(tmp_path, "--log", logs / "n0.jsonl", "--log", logs / "n2.jsonl", "--json")
    found = json.loads(out)
    assert code == 0 and found["nodes_without_log"] == ["node 0", "node 1", "node 3"], "numbers, as no log tells the host's name"
    assert "The logs of 3 nodes are not here: node 0, node 1, node 3" in (tmp_path / "report.html").read_text("utf-8")
    assert [one["node"] for one in found["lost_nodes"]] == ["node 3", "node 0", "node 1"][:1] + ["node 1"]


def test_without_names_of_hosts_nodes_have_their_numbers(tmp_path):
    assert built(tmp_path, tell_hosts=False).nodes == ["node 0", "node 1", "node 2", "node 3"]


@pytest.mark.parametrize("ahead", [3600.0, -40.0, 5.0, -1.5])
def test_a_clock_that_is_apart_is_said_and_put_right(tmp_path, ahead):
    right, wrong = built(tmp_path / "right"), built(tmp_path / "wrong", clocks={"n3": ahead})
    assert right.clocks == [] and {(one.node, one.proven) for one in wrong.clocks} == {("n3", True)}
    assert all(one.ahead_s == pytest.approx(ahead, abs=0.02) for one in wrong.clocks) and len(wrong.clocks) == 2
    for one, other in zip(right.captured, wrong.captured, strict=True):
        assert (other.begin_s, other.captured_s, other.local_s) == pytest.approx((one.begin_s, one.captured_s, one.local_s), abs=0.05)
    said = node_page.notes(wrong)
    way = "ahead of" if ahead > 0 else "behind"
    assert len(said) == 1 and f"the clock of n3 seems, in 2 runs up to" in said[0] and f"{way} the others'" in said[0]
    assert wrong.end_s == pytest.approx(right.end_s, abs=0.05)


@pytest.mark.parametrize("ahead", [0.5, -0.5])
def test_what_a_clock_may_be_apart_unnoticed_draws_no_nonsense(tmp_path, ahead):
    """Less than a version takes to become local."""
    made = built(tmp_path, clocks={"n3": ahead})
    assert made.clocks == [] and all(v.begin_s <= v.captured_s <= v.local_s <= v.protected_s for v in made.captured)


def test_of_two_clocks_that_differ_the_first_ones_is_kept(tmp_path):
    logs = made_nodes.made(hosts=4, clocks={"n2": 30.0})
    logs.lines = {name: logs.lines[name] for name in ("n0", "n2")}
    made = history.build("lj", events.read(None, "lj", [made_nodes.write(tmp_path / "logs", logs)]).events)
    assert {one.node for one in made.clocks if one.run.endswith("1")} == {"n2"}


def test_who_was_only_told_late_is_not_moved(tmp_path):
    """Its own captures fit the others' levels: so its clock may be right."""
    logs = made_nodes.made()
    late = [json.loads(one) for one in logs.lines["n3"]]
    for one in late:
        one["t_ns"] += int(2.5e9) if one["event"] in ("local", "protected") else 0
    logs.lines["n3"] = [json.dumps(one) for one in late]
    made = history.build("lj", events.read(None, "lj", [made_nodes.write(tmp_path / "logs", logs)]).events)
    assert {(one.node, one.proven) for one in made.clocks} == {("n3", False)}
    assert made.captured[0].local_s == made.captured[0].parts["n3"].local_s > 3
    assert "n3 was told levels when its clock was, in 2 runs up to 2.5 s ahead of the others'" in node_page.notes(made)[0]


def test_a_level_without_a_telling_node_bounds_the_clock(tmp_path):
    """A log that was copied early: captured, and no level. The others were told the level before that, by their clocks."""
    logs = made_nodes.made(clocks={"n3": 20.0})
    logs.lines["n3"] = [one for one in logs.lines["n3"] if '"local"' not in one and '"protected"' not in one]
    made = history.build("lj", events.read(None, "lj", [made_nodes.write(tmp_path / "logs", logs)]).events)
    assert {(one.node, one.versions, one.proven) for one in made.clocks} == {("n3", 0, True)}
    assert all(18 < one.ahead_s <= 20 for one in made.clocks) and "at least" in node_page.notes(made)[0]
    assert all(v.local_s >= v.captured_s for v in made.captured)


@pytest.mark.parametrize("hosts, traces, rows", [(4, 3, 4), (8, 7, 8), (9, 1, 9), (70, 1, 64)])
def test_many_nodes_stay_readable(tmp_path, hosts, traces, rows):
    made = built(tmp_path, hosts=hosts)
    ranks = charts.ranks(made)
    used = [one for one in ranks["data"] if one["x"]]
    assert len(used) == traces and sum(len(one["x"]) for one in used) == made_nodes.RANKS * (hosts - 1)
    chart = node_charts.nodes(made)
    assert len(chart["data"][0]["y"]) == len(chart["data"][0]["z"]) == rows and "n2" in chart["data"][0]["y"]
    assert ("those 64 that were slowest most often" in node_page.of_nodes(made)) == (hosts > 64)


@browser.needed
def test_the_page_of_several_nodes(tmp_path):
    logs = made_nodes.write(tmp_path / "logs", made_nodes.made(clocks={"n3": 12.5}))
    code, out, err = report(tmp_path, "--log", logs, "--json")
    found = json.loads(out)
    assert (code, err) == (0, "") and [one["node"] for one in found["nodes"]] == ["n0", "n1", "n2", "n3"]
    assert [one["slowest"]["written"]["node"] for one in found["versions_by_node"]] == ["n2"] * 10
    file = tmp_path / "report.html"
    choose = ("const p = Array.from(document.querySelectorAll('.plot')).find(p => p.data[0].type == 'heatmap');"
              "const b = p.layout.updatemenus[0].buttons[1];"
              "Plotly.restyle(p, ...b.args).then(() => { document.body.dataset.chosen = b.label + ': ' + p.data[0].z[2][9]; });")  # fmt: skip
    file.write_text(file.read_text("utf-8").replace("</body>", f"<script>{choose}</script></body>"), encoding="utf-8")
    text = browser.elements(file, tmp_path / "profile")
    assert 'data-drawn="6"' in text and "the clock of n3 seems" in text
    seen = re.search(r'data-chosen="longest wait of a rank: ([0-9.]+)"', text)
    assert float(seen[1]) == pytest.approx(1000 * found["versions_by_node"][9]["slowest"]["blocked"]["seconds"], abs=0.01)
    rows = re.findall(r"<tr><td[^>]*>(n[0-9])</td><td[^>]*>([0-9.]+ MB)</td>", text)
    assert rows == [("n0", "671.1 MB"), ("n1", "402.7 MB"), ("n2", "671.1 MB"), ("n3", "671.1 MB")]
    assert len(browser.picture(file, tmp_path / "profile", (1100, 4600))) > 100_000, "an almost empty picture"


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
    (lambda folder: in_file(folder, b"PNG\0\n\xff\n"), 1, "format", "holds no event that can be read; {0}:1: not JSON"),
    (lambda folder: in_file(folder, b""), 1, "format", "holds no event that can be read"),
    (lambda folder: in_file(folder, b'{"event":"local","t_n'), 1, "format", "holds no event that can be read"),
    (pipe, 1, "format", "is no regular file; copy the log into one"), (lambda folder: pathlib.Path("/dev/null"), 1, "format", "is no regular file"),
    (loop, 1, "io", "Too many levels of symbolic links"), (lambda folder: folder / "none", 3, "not_found", "no such file or folder"),
    (no_logs, 3, "not_found", "no event log (*.jsonl) in this folder")])  # fmt: skip
def test_what_is_no_log_of_the_job_is_refused(tmp_path, bad, code, name, says):
    """Although the others are good."""
    logs, file = made_nodes.write(tmp_path / "logs", made_nodes.made()), bad(tmp_path)
    found = report(tmp_path, "--log", logs, "--log", file, "--json")
    error = json.loads(found[1])["error"]
    assert (found[0], error["code"]) == (code, name) and says.format(file) in error["message"] and str(file) in error["message"]
    assert found[2].count("\n") == 1 and not (tmp_path / "report.html").exists()


def test_half_a_last_line_and_lines_of_others_are_left_out(tmp_path):
    logs = made_nodes.write(tmp_path / "logs", made_nodes.made())
    expected = json.loads(report(tmp_path, "--log", logs, "--json")[1])
    with open(logs / "n1.jsonl", "a") as file:
        file.write(json.dumps({**made_log.events()[0][0], "job": "heat"}) + '\nwhat\n{"event":"local","t_n')
    code, out, err = report(tmp_path, "--log", logs, "--json")
    assert code == 0 and "n1.jsonl: 1 line of job heat" in err and re.search(r"n1.jsonl:[0-9]+: not JSON", err)
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
                    one["t_ns"] = one["t_ns"] + rng.randint(-(10**12), 10**12) if isinstance(one.get("t_ns"), int) else 5
                broken.lines[name] += [json.dumps(one)] * (rng.random() > 0.1)
        code, out, err = report(tmp_path, "--log", made_nodes.write(tmp_path / "logs", broken), "--json")
        assert code in (0, 1, 3), f"seed {seed}, log {number}: {err}"
        json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
        good += code == 0
    assert good > 20
