"""`backstay report`: what the page shows of a known log, damaged logs, and the page in a real browser."""

import contextlib
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
from unittest import mock

import made_log
import pytest
from backstay.cli.__main__ import main
from backstay.report import charts, events, history, times

BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium")


def report(folder, *words):
    out, err = io.StringIO(), io.StringIO()
    argv = ["backstay", "report", "lj", "--dir", str(folder), "-o", str(folder / "report.html"), *map(str, words)]
    cache = mock.patch.dict("os.environ", XDG_CACHE_HOME=str(folder / "cache"))
    with cache, mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main()
    assert "Traceback" not in err.getvalue()
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def made():
    return history.build("lj", made_log.events()[0])


def test_history_knows_versions_failures_and_what_was_lost(made):
    failures = made_log.events()[1]
    assert [v.number for v in made.captured] == list(range(1, 23)) and all(v.local_s for v in made.captured)
    assert [one.ranks for one in made.failures] == [[3], [7, 8]]
    assert [(one.restart.version, one.restart.source) for one in made.failures] == [(8, "pool"), (13, "local")]
    for one, (at, version) in zip(made.failures, failures, strict=True):
        assert one.at_s == pytest.approx(at, abs=0.1)
        assert one.redone_s == pytest.approx(at - made.captured[version - 1].begin_s, abs=0.1)


def test_the_time_adds_up_and_has_an_expectation(made):
    spent = times.account(made)
    assert spent.measured["saving"] == pytest.approx(sum(v.blocked_s for v in made.captured) / made.end_s)
    assert spent.measured["restarts"] == pytest.approx(1.6 / made.end_s)
    assert spent.mtti_s == pytest.approx(made.end_s / 2) and spent.interval_s == pytest.approx(30)
    assert spent.expected["work done again"] == pytest.approx(15 / spent.mtti_s, rel=0.1)  # half an interval a failure
    assert times.account(made, 1e6).expected["work done again"] < 1e-4


def test_charts_show_the_same(made):
    rank_chart = charts.ranks(made)["data"][0]
    assert len(rank_chart["x"]) == made_log.RANKS and max(rank_chart["y"]) == pytest.approx(1000 * made.captured[-1].blocked_s)
    perceived, real, memory = charts.bandwidths(made, {"memory": 1e10, "disk": None})["data"]
    assert perceived["y"][0] > 5 * real["y"][0] and memory["y"] == [1e10, 1e10]
    assert real["y"][0] == pytest.approx(made.captured[0].bytes / made.captured[0].writing_s)


def probe(folder):
    (folder / "cache" / "backstay").mkdir(parents=True)
    speeds = {"memory": {"copy_bytes_per_s": 4e10}, "disk": {"write_bytes_per_s": 1.5e9}}
    (folder / "cache" / "backstay" / "probe.json").write_text(json.dumps(speeds))


@pytest.mark.skipif(BROWSER is None, reason="no chromium; scripts/setup installs chromium-headless-shell")
def test_the_page_opens_without_an_error_and_without_a_network(tmp_path):
    made_log.write(tmp_path / "lj")
    probe(tmp_path)
    code, out, err = report(tmp_path, "--json")
    assert (code, err) == (0, "") and json.loads(out)["failures"] == 2
    page, picture = tmp_path / "report.html", tmp_path / "page.png"
    text = page.read_text("utf-8")
    assert not re.search(r'(src|href)="(?!data:)', text.split("</script>", 1)[1])
    done = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
         "--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1100,3600",
         "--virtual-time-budget=20000", f"--screenshot={picture}", page.as_uri()],
        capture_output=True, text=True, timeout=200)  # fmt: skip
    assert not re.findall(r".*CONSOLE.*", done.stderr), done.stderr
    assert picture.stat().st_size > 100_000, "an almost empty picture"
    done = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
         "--virtual-time-budget=20000", "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=200)  # fmt: skip
    assert 'data-drawn="5"' in done.stdout and done.stdout.count('class="main-svg"') >= 5


def test_text_of_the_log_cannot_become_part_of_the_page(tmp_path):
    bad = "</script><script>alert(1)</script>"
    lines = [json.dumps(one) for one in made_log.events()[0]]
    lines.append(json.dumps(made_log._event("set_aside", 2000, 0, version=3, why=bad)))
    made_log.write(tmp_path / "lj", lines)
    assert report(tmp_path)[0] == 0
    assert bad not in pathlib.Path(tmp_path / "report.html").read_text("utf-8")


def test_damaged_lines_are_left_out_and_named(tmp_path):
    lines = [json.dumps(one) for one in made_log.events()[0]]
    lines[5:5] = ["{not json", '{"event":"captured","t_ns":1}', '{"event":"new kind","t_ns":1}', '{"event":"local","t_ns":-1}', "[]"]
    made_log.write(tmp_path / "lj", lines)
    with open(tmp_path / "lj" / "events.jsonl", "a") as file:
        file.write('{"event":"local","t_n')  # cut short
    code, out, err = report(tmp_path, "--json")
    assert code == 0 and json.loads(out)["unreadable_lines"] == 4
    assert "events.jsonl:6: not JSON" in err and "events.jsonl:7: captured without a valid run" in err


@pytest.mark.parametrize("lines, code, says", [
    (None, 3, "no job lj under"), ([], 1, "holds no event that can be read"), (["\0\0", "x"], 1, "events.jsonl:1: not JSON"),
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


def test_wrong_options(tmp_path):
    made_log.write(tmp_path / "lj")
    assert report(tmp_path, "--mtti", "0")[0::2] == (2, "backstay report: --mtti must be above 0 and finite, not 0\n")
    assert report(tmp_path, "-o", tmp_path / "none" / "x.html")[0] == 1
