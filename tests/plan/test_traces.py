"""Failure logs: every format, every kind of damage as one line with line and column, and the real
logs where they are there.
"""

import json
import lzma
import math
import pathlib

import numpy as np
import pytest
import real
from backstay.plan.check import PlanError
from backstay.plan.simulate import replay
from backstay.plan.traces import read, slurm, statistics
from backstay.plan.traces.log import BadRow
from runner import result, run

LANL_HEAD = "System,nodes,nodenumz,Prob Started,Prob Fixed\n"
EVENTS = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"


def hbd(*records):
    keys = ("node_id", "event_time", "event_type")
    return "[\n" + ",\n".join(json.dumps(dict(zip(keys, one, strict=False))) for one
                              in records) + "\n]\n"


# text, format, seconds from the first failure, nodes, seconds of repair
GOOD = [
    ("time,node\n10,a\n5.5,b\n", "plain", [0, 4.5], ["b", "a"], [None, None]),
    ("2024-05-01T12:00:00,a,2024-05-01T12:01:00\n2024-05-01 13:00,b\n", "plain", [0, 3600],
     ["a", "b"], [60, None]),
    ("2024-05-01T12:00:00Z,a\n2024-05-01T14:00:00.5+01:00,b,2024-05-01T13:01:00.500Z\n", "plain",
     [0, 3600.5], ["a", "b"], [None, 60]),
    (LANL_HEAD + "7,4,1,12/31/1999 23:59,1/1/2000 0:09\n7,4,0,1/1/00 0:00,1/1/00 0:02\n", "lanl",
     [0, 60], ["1", "0"], [600, 120]),
    (hbd(("x", 1, "fault_start"), ("y", 1.5, "fault_start"), ("x", 2, "fault_end")), "infinitehbd",
     [0, 43200], ["x", "y"], [86400, None]),
    (EVENTS + "c||2024-05-01T00:00:00|Unknown||Cluster Registered "
              "TRES|\nc|n1|2024-05-01T00:00:00|2024-05-01T00:00:30|DOWN*|r|\n"
     "c|n2|2024-05-01T00:01:00|Unknown|DOWN|r|\nc|n3|2024-05-01T00:01:00|Unknown|DRAIN|r|\n",
     "slurm", [0, 60], ["n1", "n2"], [30, None]),
    ("JobID|State|End|NodeList\n1|COMPLETED|2024-05-01T00:00:00|n1\n2|NODE_FAIL|2024-05-01T00:00:00|n[07-09]\n2.0|NODE_FAIL|2024-05-01T00:00:00|n7\n"
     "3|NODE_FAIL|2024-05-01T01:00:00|m1\n", "slurm", [0, 3600], ["n07", "m1"], [None, None]),
]  # fmt: skip


def written(tmp_path, text):
    path = tmp_path / "log"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("text, form, times, nodes, repairs", GOOD, ids=range(len(GOOD)))
def test_every_format_is_read(tmp_path, text, form, times, nodes, repairs):
    for data in (text.encode(), lzma.compress(text.encode()),
                 b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()):
        log = read.log(written(tmp_path, data))
        assert log.format == form and log.times_s == pytest.approx(times) and [log.names[i] for i
            in log.nodes] == nodes
        assert [None if math.isnan(one) else one for one in log.repair_s] == repairs


# text, what the message says after the file's name
BAD = [
    (hbd(("x", 1, "fault_start")) + "[]\n", ":3: the list ends here, and more follows: '[]'"),
    ("2024-05-01T12:00:00,a\n2024-05-01T12:00:00Z,b\n",
     ":2: column time: must be a date as in the lines before, not '2024-05-01T12:00:00Z'"),
    ("1,a\n3,b,2024-05-01T12:00:00\n",
     ":2: column repaired: must be seconds as in the lines before"),
    ("", ":1: column 1: the file is empty"), (" \n", ":1: column 1: the file is empty"),
    ("hello\n", ":1: column 1: not a failure log"),
    ("{}", ":1: column 1: not a failure log"), (b"\x00\x01", ": not a text file"),
    (b"\xfd7zXZ\0rubbish", ": the compressed file is damaged"),
    (b"\x1f\x8brubbish", ": the compressed file is damaged"), ("time,node\n", ": holds no failure"),
    ("time,node\n1,a\nx,b\n", ":3: column time: must be a finite number, not 'x'"),
    ("time,node\n1,a\nnan,b\n", ":3: column time"),
    ("1,a\n1e400,b\n", ":2: column time"),
    ("time,node\n1\n", ":2: column node: a line is time,node"), ("1,a,2,3\n", ":1: column node"),
    ("1,\n", ":1: column node"),
    ("5,a,4\n", ":1: column time: the node is repaired before it failed"),
    ("1,a\n2024-05-01T12:00:00,b\n", ":2: column time: must be seconds as in the lines before"),
    ("2024-05-01T12:00:00,a\n7,b\n", ":2: column time: must be a date as"),
    ("01/02/2024 10:00,a\n", ":1: column time: must be a date such as"),
    ("2024-05-01T25:00:00Z,a\n", ":1: column time: must be a date such as"),
    ("2024-05-01T12:00:00,a\n2024-05-32T12:00:00,a\n",
     ":2: column time: must be a date such as 2024-05-01T12:00:00"),
    ("System,nodes,nodenumz,Started\n1,2,3,4\n",
     ":1: column Prob Started: is missing; the columns are System"),
    (LANL_HEAD + "7,4,1,31.12.1999 23:59,1/1/2000 0:09\n",
     ":2: column Prob Started: must be a date such as 6/21/2005 10:54, not '31.12."),
    (LANL_HEAD + "7,4,1,31/12/1999 23:59,1/1/2000 0:09\n", ":2: column Prob Started"),
    (LANL_HEAD + "7,4,1,1/1/2000 0:09,soon\n", ":2: column Prob Fixed"),
    (LANL_HEAD + "7,4,1,1/2/2000 0:09,1/1/2000 0:09\n",
     ":2: column Prob Started: the node is repaired before"),
    (LANL_HEAD + "7,4,1\n", ":2: column Prob Started: the line has 3 columns, the head 5"),
    (LANL_HEAD + "7,4,,1/1/2000 0:09,1/1/2000 0:10\n", ":2: column nodenumz"),
    (LANL_HEAD, ": holds no failure"), ("[]", ": holds no failure"),
    ("[\n{\n", ":3: column 1: not JSON"), ("[1]", ":1: column node_id: is missing"),
    (hbd(("x", 1, "fault_start"), ("x", "1", "fault_end"), ("x", 1, "fault_end")),
     ":4: column event_type: fault_end of node x, which has no fault"),
    (hbd(("x", 1, "fault_start"), ("x", "soon", "fault_end")),
     ":3: column event_time: must be a finite number"),
     (hbd(("x", 1, "start")), ":2: column event_type"),
    (hbd(("x", True, "fault_start")), ":2: column event_time"),
    (hbd(("x", 1)), ":2: column event_type: is missing"),
    (hbd((7, 1, "fault_start")), ":2: column node_id"),
    (hbd(("x", 3, "fault_start"), ("x", 2, "fault_end")),
     ":3: column event_time: the node is repaired before"),
    (EVENTS + "c|n1|yesterday|Unknown|DOWN|r|\n", ":2: column TimeStart: must be a date"),
    (EVENTS + "c|n1|2024-05-01T00:00:00\n", ":2: column TimeEnd"),
    (EVENTS + "c|n[1-|2024-05-01T00:00:00|Unknown|DOWN|r|\n",
     ":2: column NodeList: must be a list of nodes"),
     ("a|b\n1|2\n", ":1: column JobID: is missing"),
]  # fmt: skip


@pytest.mark.parametrize("text, says", BAD, ids=range(len(BAD)))
def test_damage_is_one_line_with_line_and_column(tmp_path, text, says):
    path = written(tmp_path, text)
    code, out, err = run("replay", "--trace", path, "--cost", 1)
    assert (code, out) == (2, "") and err.count("\n") == 1 and f"--trace {path}{says}" in err, err


def test_overlapping_repairs_are_left_out_with_a_note(tmp_path):
    path = written(tmp_path,
                   "time,node,repaired\n0,a,100\n50,a,300\n200,a,210\n300,a,\n400,b,\n900,c,\n")
    log = read.log(path)
    assert log.times_s.tolist() == [0, 300, 400, 900]
    found = result("replay", "--trace", path, "--cost", 1)
    assert "2 left out: failures of nodes under repair 2 (line 3 first)" in found["notes"][0]


def test_a_file_of_several_systems_needs_one(tmp_path):
    lines = [f"{s},4,{i},{i}/1/2000 0:00,{i}/1/2000 1:00" for s in (2, 10) for i in range(1, 8)]
    path = written(tmp_path, LANL_HEAD + "\n".join(lines))
    assert result("replay", "--trace", path, "--system", 10, "--cost", 9)["failures"] == 7
    for words, says in (((), "--system must be given:"),
                        (("--system", "3"), "--system must be one of 2, 10, not '3'")):
        code, _, err = run("replay", "--trace", path, "--cost", 9, *words)
        assert code == 2 and says in err
    assert run("replay", "--trace", tmp_path / "no", "--cost", 9)[0] == 3


def slurm_output(name):
    return pathlib.Path(__file__).parent / "slurm" / name


def test_what_slurm_printed_is_read():
    """Slurm 22.05 on four nodes, of which two were killed and one was set down and failed by hand.
    """
    log = read.log(slurm_output("events.txt"))
    assert [log.names[i] for i in log.nodes] == ["n3", "n0", "n3", "n3",
                                                 "n1"] and log.times_s.tolist() == [0, 46, 63, 64,
                                                     88]
    assert log.repair_s[:3].tolist() == [0, 59,
                                         0] and math.isnan(log.repair_s[3]) and log.repair_s[4] == 17
    assert log.rows["left_out"] == {"events without a node": 1,
                                    "events of another kind (drained, ..)": 1}
    assert result("replay", "--trace", slurm_output("events.txt"), "--cost", 1, "--window",
                  2)["incidents"] == 4
    log = read.log(slurm_output("jobs.txt"))
    assert [log.names[i] for i in log.nodes] == ["n3", "n0", "n3",
                                                 "n1"] and log.times_s.tolist() == [0, 46, 63, 88]


def test_slurm_quotes_nothing(tmp_path):
    lines = [f'c|n{i}|2024-05-01T00:0{i}:00|Unknown|DOWN|{reason}|r' for i,
             reason in enumerate(('"open', "a|b", "|", '"x"'))]
    assert len(read.log(written(tmp_path, EVENTS + "\n".join(lines) + "\n")).times_s) == 4
    body = "JobID|JobName|State|End|NodeList|\n7|a|b|NODE_FAIL|2024-05-01T00:00:00|n1|\n"  # --parsable: a separator at the end, too
    assert read.log(written(tmp_path, body)).names == ("n1",)


def test_host_lists():
    assert slurm.hosts("n[08-10,12]x,login1,m2") == ["n08x", "n09x", "n10x", "n12x",
        "login1", "m2"]
    for wrong in ("", "n[3-1]", "n[a]", "n[0-99999999]", "n]"):
        with pytest.raises(BadRow, match="column NodeList"):
            slurm.hosts(wrong)


# Statistics
# --------------------------------------------------------------------------------------------------

def test_incidents_gather_what_fails_within_the_window(tmp_path):
    log = read.log(written(tmp_path, "0,a\n60,b\n61,c\n100,c\n121,d\n500,a\n510,a\n"))
    found = statistics.incidents(log, 60)
    assert found.times_s.tolist() == [0, 61, 500] and found.nodes.tolist() == [2, 2, 1]
    assert statistics.shares(found) == {"1": 1 / 3, "2": 2 / 3, "3-16": 0.0, "more": 0.0}
    with pytest.raises(PlanError, match="holds 2 incidents at least --window apart; 3"):
        statistics.incidents(log, 400)


@pytest.mark.parametrize("shape", [0.6, 1.0, 2.5])
def test_the_law_of_drawn_gaps_is_found(shape):
    gaps = 5000 * np.random.default_rng(20_261_126).weibull(shape, 20_000)
    law = statistics.weibull(gaps)
    assert abs(law.shape
               - shape) < 4 * law.shape_error < 0.1 * shape and law.scale_s == pytest.approx(5000,
                   rel=0.04)
    assert law.distance < 0.02 and (shape == 1 or statistics.exponential_distance(gaps) > 0.1)
    half = statistics.weibull(gaps[:5000]).shape_error
    assert half == pytest.approx(2 * law.shape_error, rel=0.1)


@pytest.mark.parametrize("gaps, alike",
                         [([100.0] * 5, True), ([100.0, 100.001, 99.999], True),
                          ([100.0, 101.0, 99.0], False), ([1.0, 1e6], False)])
def test_gaps_that_are_all_alike_have_no_shape(gaps, alike, tmp_path):
    law = statistics.weibull(gaps)
    assert (law is None) == alike and (alike or 0 < law.shape < statistics.SHAPE_MAX)
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    (tmp_path / "log").write_text("".join(f"{at},n{place}\n" for place, at in enumerate(times)))
    words = ("replay", "--trace", tmp_path / "log", "--cost", 0.01, "--window", 0)
    found, shown = result(*words), run(*words)[1]
    fitted = [found[f"weibull_{name}"] for name in ("shape", "shape_error", "scale_s", "distance")]
    assert (fitted == [None] * 4) == alike and 0 < found["exponential_distance"] < 1
    assert any("no Weibull shape: the gaps are all alike" in note for note
               in found["notes"]) == alike == ("cannot be estimated" in shown)


def test_replay_counts_by_hand():
    # Failures at 250 and 700 s. Until 250 two segments are saved; from 270 three more (600), 100
    # more beyond them are lost; from 720 two more (940), and 60 s of the next one.
    lost = replay.lost_fractions(np.array([0.0, 250.0, 700.0, 1000.0]), np.array([100.0]), 10.0,
                                 20.0)
    assert lost[0] == pytest.approx(1 - (200 + 300 + 200 + 60) / 1000)


def test_the_best_interval_is_no_worse_than_the_others():
    times = np.cumsum(np.random.default_rng(7).weibull(0.7, 300)) * 40_000
    found = replay.replay(times, 300.0, 600.0)
    assert found.lost_fraction["best"] <= min(found.lost_fraction.values())
    assert found.interval_s["four_times_daly"] == 4 * found.interval_s["daly"]


# The real logs
# --------------------------------------------------------------------------------------------------

needs_logs = pytest.mark.skipif(not (real.folder() / real.LANL).is_file(),
                                reason=f"no failure logs in {real.folder()}; set BACKSTAY_TRACES")


@needs_logs
def test_the_page_shows_what_the_real_logs_say():
    shown = real.parts()[1].splitlines()
    assert len(shown) == 2 + len(real.CASES)
    for case in (real.CASES[1], real.CASES[-1]):
        assert real.row(*case,
                        result(*real.words(*case))) in shown, "run: PYTHONPATH=python python tests/plan/real.py --write"


@needs_logs
def test_four_times_too_long_about_doubles_the_loss():
    for name, system in (real.CASES[1], real.CASES[-1]):
        lost = result(*real.words(name, system))["lost_fraction"]
        assert 1.5 < lost["four_times_daly"] / lost["daly"] < 2.2 and lost["best"] <= lost["daly"] < 1.05 * lost["best"]


@needs_logs
def test_lanl_asks_for_the_system():
    assert "--system must be given" in run("replay", "--trace", real.folder() / real.LANL,
                                           "--cost", 3)[2]
