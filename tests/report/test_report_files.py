"""`backstay report` of captured files, and `backstay plan aggregation --job`: what a known log says
of them.
"""

import contextlib
import io
import json
import sys
from unittest import mock

import made_log
import pytest
from backstay.cli.__main__ import main
from backstay.report import captured_files, files_page

T0_NS = 1_795_212_000_000_000_000


def event(kind, at_s, **fields):
    return {"event": kind, "t_ns": T0_NS + int(at_s * 1e9), "job": "lj.files.n0", "run": "f" * 16,
            "node": 0, **fields}


def written(at_s, captured, writes, waits):
    return event("files_written", at_s, captured=captured, direct={"files": 1, "bytes": 30},
                 real={"files": 0, "bytes": 0}, writes=writes, waits=waits)


def version(number, at_s, captured_s, local_s, home_s):
    begun = {"writer": 0, "bytes": 10, "begin_ns": T0_NS, "end_ns": T0_NS}
    return [event("captured", at_s, version=number, bytes=10, chunks=1, seconds=captured_s,
                  ranks=[], writers=[begun]),
            event("local", at_s + local_s, version=number, bytes=10, seconds=local_s),
            event("home", at_s + home_s, version=number)]  # fmt: skip


def log():
    """Two lines of counts, three versions; both classes of the first line are in the second."""
    return [
        *version(1, 1.0, 0.25, 0.5, 1.0), *version(2, 2.0, 0.5, 0.75, 2.0),
        written(5, {"files": 2, "bytes": 20_000_000},
                [{"below": 64, "writes": 600, "bytes": 30_000, "seconds": 0.5},
                 {"below": 0, "writes": 10, "bytes": 20_000_000, "seconds": 1.0}],
                [{"call": "close", "calls": 3, "seconds": 0.3, "longest": 0.2}]),
        *version(3, 6.0, 1.0, 1.0, 3.0),
        written(9, {"files": 1, "bytes": 10_000_000},
                [{"below": 64, "writes": 400, "bytes": 20_000, "seconds": 0.5},
                 {"below": 65536, "writes": 90, "bytes": 4_500_000, "seconds": 1.0},
                 {"below": 0, "writes": 5, "bytes": 10_000_000, "seconds": 1.0}],
                [{"call": "close", "calls": 2, "seconds": 0.5, "longest": 0.4},
                 {"call": "room", "calls": 1, "seconds": 0.1, "longest": 0.1}])]  # fmt: skip


def keep(folder, job, events):
    (folder / job).mkdir()
    (folder / job / "events.jsonl").write_text("".join(json.dumps(one) + "\n" for one in events))


@pytest.fixture
def folder(tmp_path):
    keep(tmp_path, "lj.files.n0", log())
    return tmp_path


def run(folder, *words):
    out, err = io.StringIO(), io.StringIO()
    cache = mock.patch.dict("os.environ", XDG_CACHE_HOME=str(folder / "cache"))
    with cache, mock.patch.object(sys, "argv", ["backstay", *map(str, words)]), \
            contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main()
    assert "Traceback" not in err.getvalue()
    return code, out.getvalue(), err.getvalue()


def report(folder, *words):
    return run(folder, "report", "lj", "--dir", folder, "-o", folder / "report.html", *words)


def test_the_lines_of_counts_add_up():
    found = captured_files.of(log())
    assert found.files == {"captured": (3, 30_000_000), "direct": (2, 60), "real": (0, 0)}
    assert [one[:3] for one in found.sizes] == [(64, 1000, 50_000), (65536, 90, 4_500_000),
                                                (None, 15, 30_000_000)]
    assert found.sizes[0].seconds == pytest.approx(1.0)
    assert found.waits == [("close", 5, pytest.approx(0.8), 0.4), ("room", 1, 0.1, 0.1)]
    assert found.levels == {"captured": (3, 0.5, 1.0), "local": (3, 0.75, 1.0),
                            "home": (3, 2.0, 3.0)}


def test_a_log_without_captured_files_has_nothing_of_them():
    assert captured_files.of(made_log.events()[0]) is None


def test_the_page_and_the_terminal_show_them_also_of_a_job_that_has_no_ranks(folder):
    code, out, _ = report(folder)
    assert code == 0
    page = (folder / "report.html").read_text()
    for text in ("3 files of 30 MB into the pool", "1 105 writes of 34.55 MB"):
        assert text in page and text in out
    for cells in (["below 64 B", "1 000", "90.5", "50 kB", "0.1", "1 s", "25.0"],
                  ["1 MiB and more", "15", "1.4", "30 MB", "86.8", "2 s", "50.0"],
                  ["captured to home", "3", "2 s", "3 s"]):  # fmt: skip
        assert "".join(f'<td class="short">{cell}</td>' for cell in cells) in page


def test_a_job_of_ranks_has_them_beside_its_versions(folder):
    keep(folder, "lj", made_log.events()[0])
    code, out, _ = report(folder, "--json")
    result = json.loads(out)
    assert code == 0 and result["versions"] == 22
    assert result["captured_files"]["captured"] == {"files": 3, "bytes": 30_000_000}
    assert result["captured_files"]["writes"][2] == {"below": None, "writes": 15,
                                                     "bytes": 30_000_000, "seconds": 2.0}
    page = (folder / "report.html").read_text()
    assert "Versions and levels" in page and "Captured files" in page


def test_without_either_there_is_no_such_job(tmp_path):
    code, _, err = report(tmp_path)
    assert code == 3 and "no job lj" in err


def test_a_line_that_lacks_something_is_named_and_left_out(folder):
    bad = [{**log()[6], "writes": [{"below": 64}]}, {**log()[6], "direct": 5},
           {**log()[6], "waits": None}]
    with (folder / "lj.files.n0" / "events.jsonl").open("a") as file:
        file.write("".join(json.dumps(one) + "\n" for one in bad))
    code, out, err = report(folder, "--json")
    assert code == 0
    assert [f"files_written without a valid {key}" in err for key in ("writes", "direct",
                                                                      "waits")] == [True] * 3
    assert json.loads(out)["captured_files"]["writes"][0]["writes"] == 1000


def test_the_lines_of_the_terminal_stand_below_each_other():
    lines = files_page.lines(captured_files.of(log()))
    assert len({len(line) for line in lines[1:5]}) == 1


def test_the_planner_takes_the_writes_that_were_counted(folder):
    code, out, _ = run(folder, "plan", "aggregation", "--job", "lj", "--dir", folder, "--json")
    result = json.loads(out)
    assert code == 0 and result["data_bytes"] == 34_550_000
    # Those of 64 bytes ride along with their neighbours.
    assert result["without_pool"]["requests"] == 105
    assert result["with_pool"]["requests"] == 9
    _, out, _ = run(folder, "plan", "aggregation", "--job", "lj", "--dir", folder, "--json",
                    "--checkpoints", 5)  # fmt: skip
    assert json.loads(out)["data_bytes"] == pytest.approx(34_550_000 / 5)


@pytest.mark.parametrize("words, reason", [
    (("--job", "lj", "--processes", "8"), "--processes the log has the writes of all processes"),
    (("--profile", "lu.C.64", "--checkpoints", "2"), "--checkpoints counts with --job only"),
    (("--profile", "lu.C.64", "--job", "lj"), "one of them"),
    (("--job", "other"), "no captured files of job other"),
])  # fmt: skip
def test_the_planner_says_what_does_not_go_together(folder, words, reason):
    where = ("--dir", folder) if "--job" in words else ()
    code, _, err = run(folder, "plan", "aggregation", *words, *where)
    assert code in (2, 3) and reason in err
