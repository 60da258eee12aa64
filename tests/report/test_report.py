"""`backstay report`: what the page shows of a known log, damaged logs, and the page in a real
browser.
"""

import contextlib
import html
import io
import json
import os
import pathlib
import random
import re
import sys
import warnings
from unittest import mock

import browser
import made_log
import pytest
from backstay.cli.__main__ import main
from backstay.report import as_data, charts, events, history, page, times



def report(folder, *words, job="lj"):
    out, err = io.StringIO(), io.StringIO()
    argv = ["backstay", "report", job, "--dir", str(folder), "-o", str(folder / "report.html"),
            *map(str, words)]
    cache = mock.patch.dict("os.environ", XDG_CACHE_HOME=str(folder / "cache"))
    with cache, mock.patch.object(sys, "argv",
                                  argv), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main()
    assert "Traceback" not in err.getvalue()
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def made():
    return history.build("lj", made_log.events()[0])


def test_history_knows_versions_failures_and_what_was_lost(made):
    failures = made_log.events()[1]
    assert [v.number for v in made.captured] == list(range(1, 23)) and all(v.local_s for v
        in made.captured)
    assert [one.ranks for one in made.failures] == [[3], [7, 8]]
    assert [(one.restart.version, one.restart.source) for one in made.failures] == [(8, "pool"),
        (13, "local")]
    for one, (at, version) in zip(made.failures, failures, strict=True):
        assert one.at_s == pytest.approx(at, abs=0.1)
        assert one.redone_s == pytest.approx(at - made.captured[version - 1].begin_s, abs=0.1)


def test_the_time_adds_up_and_has_an_expectation(made):
    spent = times.account(made)
    assert spent.measured["saving"] == pytest.approx(sum(v.blocked_s for v in made.captured)
                                                     / made.observed_s)
    assert spent.measured["restarts"] == pytest.approx(1.6 / made.observed_s)
    assert spent.mtti_s == pytest.approx(made.observed_s / 2) and spent.interval_s == pytest.approx(
        30)
    assert spent.expected["work done again"] == pytest.approx(15 / spent.mtti_s,
        rel=0.1)  # half an interval a failure
    assert times.account(made, 1e6).expected["work done again"] < 1e-4


def test_pauses_between_runs_do_not_count(made):
    # And a removal after the last level.
    assert made.end_s - made.observed_s == pytest.approx(2 * 6, abs=2)
    night = 40_000.0
    later = history.build("lj", made_log.events(pause=night)[0])
    assert later.end_s - later.observed_s == pytest.approx(2 * night,
        abs=2) and later.observed_s == pytest.approx(made.observed_s)
    assert times.account(later).measured == pytest.approx(times.account(made).measured)
    assert "pauses of 22.2 h between them not counted" in page.render(later, times.account(later),
        None, [])
    tool = made_log._event("removed", 5e5, 2, version=20)
    assert history.build("lj",
                         [*made_log.events()[0], tool]).observed_s == pytest.approx(made.observed_s)


def test_a_restart_counts_from_the_failure_to_the_next_computing(made):
    """Where one `backstay run` has started all: each failure is seen 2 s later."""
    log = [{**one, "run": f"00000007{one['run'][8:]}"} for one in made_log.events()[0]]
    for one in [one for one in log if one["event"] == "rank_left" and one["rank"] in (3, 7)]:
        log.append({key: one[key] for key in ("job", "run", "node")}
                   | {"event": "attempt_ended", "t_ns": one["t_ns"] + 2 * 10**9})
    apart, made = made, history.build("lj", sorted(log, key=lambda one: one["t_ns"]))
    first, second = made.stands
    assert first[1:] == pytest.approx((2.0, 4.0, 0.5, 0.8), abs=1e-3)
    assert second.seconds == pytest.approx(7.3, abs=1e-3)
    spent = times.account(made)
    assert made.observed_s == pytest.approx(apart.observed_s + 2 * 6), "the pauses count"
    assert spent.measured["restarts"] == pytest.approx(2 * 7.3 / made.observed_s, rel=1e-3)
    assert spent.mtti_s == pytest.approx(made.observed_s / 2)
    text = page.render(made, spent, None, [])
    assert "starting the launcher" in text and '<td class="short">0.5 s</td>' in text
    assert as_data.of(made)["standing"][0]["seconds"] == pytest.approx(7.3, abs=1e-3)
    # The user started this run by hand: the pause before it is none of the program's.
    by_hand = [one if one["run"].endswith("0") else {**one, "run": "00000008" + one["run"][8:]}
               for one in log if one["event"] != "attempt_ended"]
    assert len(history.build("lj", sorted(by_hand, key=lambda one: one["t_ns"])).stands) == 1


def test_failures_before_the_next_computing_are_one_stand(made):
    log = [{**one, "run": f"00000007{one['run'][8:]}"} for one in made_log.events()[0]]
    back = next(one for one in log if one["event"] == "restored")
    again = {"event": "rank_left", "job": "lj", "run": back["run"], "node": 0, "rank": 1,
             "lost": True, "t_ns": back["t_ns"] - 10**8}
    log[log.index(back)] = again
    found = history.build("lj", log).stands
    assert [one.at_s for one in found] == [made.failures[0].at_s]


def test_a_program_that_ran_on_did_not_wait(made):
    lines = made_log.events()[0]
    captured = next(one for one in lines if one["event"] == "captured" and one["version"] == 3)
    for one in captured["ranks"]:
        one.update(stopped_ns=2_000_000 + one["rank"], by="fork")
    found = history.build("lj", lines).captured[2]
    assert found.blocked_s == pytest.approx(2e-3, rel=0.1)
    assert found.blocked_s < made.captured[2].blocked_s
    assert max(one.copied_s for one in found.ranks) == made.captured[2].blocked_s
    assert "1 version by forked snapshots" in page._snapshots(history.build("lj", lines))
    assert page._snapshots(made) == ""


def test_levels_of_several_nodes_are_drawn_when_they_are_in_the_log(made):
    assert {one["name"] for one in charts.timeline(made)["data"]}.isdisjoint({"protected",
        "durable"})
    more = history.build("lj", made_log.events(levels=True)[0])
    assert all(v.local_s < v.protected_s < v.durable_s for v in more.captured)
    marks = {one["name"]: one for one in charts.timeline(more)["data"]}
    assert marks["durable"]["x"] == [v.durable_s for v
                                     in more.captured] and len(marks["protected"]["x"]) == 22
    lines = {one["name"]: one["y"] for one in charts.level_times(more)["data"]}
    assert lines["until durable"][0] > lines["until protected"][0] > lines["until local"][0]
    assert "22 protected, 22 durable" in page.render(more, times.account(more), None, [])


def test_charts_show_the_same(made):
    rank_chart = charts.ranks(made)["data"][0]
    assert len(rank_chart["x"]) == made_log.RANKS and max(rank_chart["y"]) == pytest.approx(1000
        * made.captured[-1].blocked_s)
    perceived, real, memory = charts.bandwidths(made, {"copy_bytes_per_s": 1e10})["data"]
    assert perceived["y"][0] > 5 * real["y"][0] and memory["y"] == [1e10, 1e10]
    first = made.captured[0]
    assert real["y"][0] == pytest.approx(first.bytes
                                         / first.disk_s) and first.disk_s > first.writing_s


def test_real_bandwidth_of_an_older_agent_is_called_too_high():
    log = [{key: value for key, value in one.items() if key != "write_seconds"} for one
           in made_log.events()[0]]
    old = history.build("lj", log)
    _, real, older = charts.bandwidths(old, None)["data"]
    assert not real["x"] and len(older["x"]) == 22 and "too high" in older["name"]
    assert older["y"][0] == pytest.approx(old.captured[0].bytes / old.captured[0].writing_s)


def test_ranks_that_died_are_told_from_those_that_mpi_ended():
    log = made_log.events()[0]
    first = next(one for one in log if one["event"] == "rank_left")
    ended = [{**first, "rank": rank, "t_ns": first["t_ns"] + int(2e7) + rank} for rank in range(32)
             if rank != 3]
    at = log.index(first) + 1
    one = history.build("lj", [*log[:at], *ended, *log[at:]]).failures[0]
    assert one.died == [3] and one.ranks == list(range(32))
    made = history.build("lj", [*log[:at], *ended, *log[at:]])
    text = page.render(made, times.account(made), None, [])
    assert "<th>ranks that died</th>" in text and '<td class="short">3</td><td class="short">31</td>' in text


def test_a_refused_restart_is_no_failure(made):
    log = made_log.events()[0]
    at = (log[-1]["t_ns"] / 1e9 - made_log.T0) + 100
    more = [made_log._event("run_begin", at, 9, ranks=3, newest=22, release="0.1.0"),
            made_log._event("refused", at + 1, 9, code="rank_count", why="saved by 32 ranks"),
            *(made_log._event("rank_left", at + 1.1, 9, rank=rank, lost=True) for rank in range(3)),
            made_log._event("run_end", at + 1.2, 9, how="refused")]  # fmt: skip
    refused = history.build("lj", [*log, *more])
    assert refused.failures == made.failures and [one.why for one
                                                  in refused.refusals] == ["saved by 32 ranks"]
    assert times.account(refused).mtti_s == pytest.approx(refused.observed_s / 2)
    text = page.render(refused, times.account(refused), None, [])
    assert "saved by 32 ranks" in text and "2 failures" in text


def test_the_limits_are_told_with_what_was_measured_beside(made):
    how = {"processes": 4, "bytes_each": 256 << 20, "bytes": 1 << 30, "direct": True, "load": 1.7,
           "cores": 2}
    text = page.render(made, times.account(made),
                       {"copy_bytes_per_s": 1e10, "disk_bytes_per_s": 1e9, "how": how}, [])
    assert "4 processes copied 268.4 MB each" in text and "load of 1.7 on 2 cores" in text
    assert "load of" not in page.render(made, times.account(made),
                                        {"copy_bytes_per_s": 1e10, "disk_bytes_per_s": 1e9}, [])


def whole_steps(made):
    """The step between ticks of each axis of versions or ranks."""
    shown = ((charts.timeline(made), "yaxis"), (charts.level_times(made), "xaxis"),
             (charts.ranks(made), "xaxis"), (charts.bandwidths(made, None), "xaxis"))
    axes = [chart["layout"][axis] for chart, axis in shown]
    assert all(axis["tick0"] == 0 and axis["tickformat"] == "d" for axis in axes)
    return [axis["dtick"] for axis in axes]


@pytest.mark.parametrize("versions, step", [(1, 1), (2, 1), (5, 1), (9, 1), (10, 2), (22, 5)])
def test_versions_and_ranks_stand_at_whole_numbers(versions, step):
    log = [one for one in made_log.events()[0] if one.get("version", 0) <= versions
           and one["event"] != "rank_left"]
    assert whole_steps(history.build("lj", log)) == [step, step, 5, step]


def test_a_huge_version_number_has_ticks_too(made):
    made.captured[0].number = 10**18
    assert whole_steps(made)[0] == 2 * 10**17


def words_of(text):
    """What a reader sees of a page, paragraph by paragraph."""
    body = re.sub(r"<script.*?</script>|<style.*?</style>", "", text, flags=re.S)
    return [html.unescape(re.sub(r"<[^>]*>", "", one)) for one
            in re.findall(r"<(?:p|td|li|h1|h2)[^>]*>(.*?)</(?:p|td|li|h1|h2)>", body, re.S)], body


@pytest.mark.parametrize("fewer", [None, "rank_left", "all but one version"])
def test_sentences_begin_with_a_capital_and_hold_no_markup(made, fewer):
    log = made_log.events()[0]
    if fewer == "rank_left":
        log = [one for one in log if one["event"] != "rank_left"]
    elif fewer:
        log = [one for one in log if one.get("version", 1) == 1]
    made = history.build("lj", log)
    text = page.render(made, times.account(made), None, ["events.jsonl:3: not JSON"])
    shown, body = words_of(text)
    assert not [one for one in shown if "`"
                in one] and "<code>backstay probe</code>" in body and "<p></p>" not in body
    paragraphs = [html.unescape(re.sub(r"<[^>]*>", "", one)) for one in re.findall(r"<p>(.*?)</p>",
        body, re.S)]
    sentences = [one for text in paragraphs for one in re.split(r"(?<=[.!?]) +", text) if one]
    assert len(sentences) > 8 and not [one for one in sentences if one[0].islower()
                                       and not one.startswith("backstay probe")], sentences
    assert "1 line of the log could not be read and is left out" in body
    if fewer == "rank_left":
        assert "An expectation needs a failure, or --mtti." in body and "0 failures" in body
    if fewer and fewer != "rank_left":
        assert "1 version captured" in body and "1 versions" not in body


@pytest.mark.parametrize("versions, ranks, choices",
                         [(50, 2, 50), (51, 2, 26), (20_000, 1, 50), (4, 100_000, 2),
                          (2, 300_000, 1)])
def test_a_long_log_makes_no_huge_page(versions, ranks, choices):
    rank = history.Rank(0, 1, 0.1)
    all_ = [history.Version(n, "r", n, n + 0.1, n + 1.0, bytes=1, blocked_s=0.1, writing_s=0.9,
                            ranks=[rank] * ranks) for n in range(1, versions + 1)]
    long = history.History("lj", 0, versions + 1.0, all_, runs=[history.Run(0.0, versions + 1.0)])
    chart = charts.ranks(long)
    buttons = chart["layout"]["updatemenus"][0]["buttons"]
    assert len(buttons) == choices and buttons[0]["label"] == f"version {versions}" and len(chart["data"]) == 1
    for button in (buttons[0], buttons[-1]):
        version = all_[int(button["label"].split()[1]) - 1]
        assert button["args"] == [{"x": [[r.rank for r in version.ranks]],
                                   "y": [[1000 * r.seconds for r in version.ranks]]}]
    text = page.render(long, times.account(long), None, [])
    assert len(text) < 30e6 and (f"{choices} of " in text) == (choices < versions)


def probe(folder):
    (folder / "cache" / "backstay").mkdir(parents=True)
    speeds = {"memory": {"copy_bytes_per_s": 4e10}, "disk": {"write_bytes_per_s": 1.5e9}}
    (folder / "cache" / "backstay" / "probe.json").write_text(json.dumps(speeds))


@browser.needed
def test_the_page_opens_without_an_error_and_without_a_network(tmp_path):
    made_log.write(tmp_path / "lj")
    probe(tmp_path)
    code, out, err = report(tmp_path, "--json")
    assert (code, err) == (0, "") and json.loads(out)["failures"] == 2
    file = tmp_path / "report.html"
    assert not re.search(r'(src|href)="(?!data:)', file.read_text("utf-8").split("</script>", 1)[1])
    assert len(browser.picture(file, tmp_path / "profile",
                               (1100, 3600))) > 100_000, "an almost empty picture"
    text = browser.elements(file, tmp_path / "profile")
    assert 'data-drawn="5"' in text and text.count('class="main-svg"') >= 5


@browser.needed
def test_another_version_can_be_chosen(tmp_path, made):
    made_log.write(tmp_path / "lj")
    assert report(tmp_path)[0] == 0
    file = tmp_path / "report.html"
    choose = ("const p = document.getElementById('plot2'), b = p.layout.updatemenus[0].buttons[20];"
              "Plotly.restyle(p, ...b.args).then(() => { document.body.dataset.chosen = b.label + "
              "' ' + p.data[0].y[31]; });")  # fmt: skip
    file.write_text(file.read_text("utf-8").replace("</body>",
                                                    f"<script>{choose}</script></body>"),
                                                    encoding="utf-8")
    seen = re.search(r'data-chosen="version 2 ([0-9.]+)"',
                     browser.elements(file, tmp_path / "profile"))
    assert float(seen[1]) == pytest.approx(1000 * made.captured[1].ranks[31].seconds)


def test_text_of_the_log_cannot_become_part_of_the_page(tmp_path):
    bad = "</script><script>alert(1)</script>"
    lines = [json.dumps(one) for one in made_log.events()[0]]
    lines.append(json.dumps(made_log._event("set_aside", 2000, 0, version=3, why=bad)))
    made_log.write(tmp_path / "lj", lines)
    assert report(tmp_path)[0] == 0
    assert bad not in pathlib.Path(tmp_path / "report.html").read_text("utf-8")


def test_damaged_lines_are_left_out_and_named(tmp_path):
    lines = [json.dumps(one) for one in made_log.events()[0]]
    lines[5:5] = ["{not json", '{"event":"captured","t_ns":1}', '{"event":"new kind","t_ns":1}',
                  '{"event":"local","t_ns":-1}', "[]"]
    made_log.write(tmp_path / "lj", lines)
    with open(tmp_path / "lj" / "events.jsonl", "a") as file:
        file.write('{"event":"local","t_n')  # cut short
    code, out, err = report(tmp_path, "--json")
    assert code == 0 and json.loads(out)["unreadable_lines"] == 4
    assert "events.jsonl:6: not JSON" in err and "events.jsonl:7: captured without a valid run" in err


def test_a_byte_order_mark_hides_no_event(tmp_path):
    made_log.write(tmp_path / "lj")
    file = tmp_path / "lj" / "events.jsonl"
    whole = len(events.read(tmp_path / "lj").events)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    log = events.read(tmp_path / "lj")
    assert (len(log.events), log.unreadable) == (whole, [])


@pytest.mark.parametrize("lines, code, says", [
    (None, 3, "no job lj under"), ([], 1, "holds no event that can be read"),
    (["\0\0", "x"], 1, "events.jsonl:1: not JSON"),
    ([json.dumps(made_log.events()[0][0])], 3, "no captured version")])  # fmt: skip
def test_without_anything_to_draw_it_says_so(tmp_path, lines, code, says):
    if lines is not None:
        made_log.write(tmp_path / "lj", lines)
    found = report(tmp_path)
    assert found[0] == code and says in found[2] and not (tmp_path / "report.html").exists()


def test_a_job_without_a_log(tmp_path):
    (tmp_path / "lj").mkdir()
    assert report(tmp_path)[0] == 3
    with pytest.raises(events.LogError):
        events.read(tmp_path / "lj")


def test_a_path_is_no_name_of_a_job(tmp_path):
    code, out, err = report(tmp_path, job=str(tmp_path))
    assert code == 2 and "is no name of a job" in err and not out


def test_a_pipe_or_folder_in_the_place_of_the_log_is_refused(tmp_path):
    made_log.write(tmp_path / "lj")
    for make in (os.mkfifo, os.mkdir):
        make(tmp_path / "lj" / "events.1.jsonl")
        code, _, err = report(tmp_path)
        assert code == 1 and err.endswith(
            "events.1.jsonl: is no regular file; move it away, the agent begins a new log\n")
        (tmp_path / "lj" / "events.1.jsonl").rename(tmp_path / make.__name__)


def test_wrong_options(tmp_path):
    made_log.write(tmp_path / "lj")
    assert report(tmp_path, "--mtti", "0")[0::2] == (2,
                                                     "backstay report: --mtti must be above 0 and "
                                                     "finite, not 0\n")
    code, _, err = report(tmp_path, "-o", tmp_path / "none" / "x.html")
    assert code == 1 and err == (f"backstay report: {tmp_path / 'none' / 'x.html'}: cannot be "
                                 f"written: there is no folder "
                                 f"{tmp_path / 'none'}; make the folder first, or choose another "
                                 f"place\n")  # fmt: skip


def broken(rng, lines):
    """The log with some events lost, doubled, swapped, or with a senseless value."""
    values = [0, 1, -1, 0.5, 1e-300, 1e18, 1.7e19, True, None, "", "x", [], {}, [{}], 2**63]
    made = []
    for one in lines:
        chance = rng.random()
        one = json.loads(json.dumps(one))
        if chance < 0.15:
            continue
        if chance < 0.35:
            one[rng.choice(list(one))] = rng.choice(values)
        elif chance < 0.4 and one.get("ranks") and one["event"] == "captured":
            rng.choice(one["ranks"])[rng.choice(["rank", "bytes", "begin_ns",
                                                 "end_ns"])] = rng.choice(values)
        made += [one] * (2 if chance > 0.95 else 1)
    if rng.random() < 0.3:
        rng.shuffle(made)
    return made[: rng.randint(0, len(made))]


def test_any_log_gives_a_page_or_one_line(tmp_path):
    seed, good = 20_261_121, 0
    rng, log = random.Random(seed), made_log.events(levels=True)[0]
    for number in range(60):
        made_log.write(tmp_path / "lj", [json.dumps(one) for one in broken(rng, log)])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            code, out, err = report(tmp_path, "--json",
                                    *(["--mtti", "1e-9"] if number % 5 == 0 else []))
        assert code in (0, 1, 3), f"seed {seed}, log {number}: {err}"
        good += code == 0
        parsed = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
        assert code == 0 or parsed["error"]["message"]
    print(f"{good} of 60 gave a page")
    assert good > 20
