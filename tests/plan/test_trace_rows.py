"""Rows of failure logs as people have them: none is dropped or counted without a word, whatever its
columns hold.
"""

import random

import pytest
from backstay.plan.check import PlanError
from backstay.plan.traces import read, slurm
from backstay.plan.traces.log import BadRow
from runner import result, run

JOBS = "JobID|JobName|State|End|NodeList|Constraints\n"
LANL = "System,nodenumz,Prob Started,Prob Fixed\n"
EVENTS = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"


def log_of(tmp_path, text, system=None):
    path = tmp_path / "log"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    log = read.log(path, system)
    rows = log.rows
    assert rows["read"] == rows["used"] + sum(rows["left_out"].values())
    return log


def at(place):
    return f"2024-03-{1 + place // 24:02}T{place % 24:02}:00:00"


def day(place, end=False):
    return f"3/{1 + place // 24}/2024 {place % 24}:{30 * end:02}"


def jobs(*rows, head=JOBS):
    """(job, state, hour) of each row, or with a node, or with a text of its last column, too."""
    text = head
    for i, (job, state, *more) in enumerate(rows):
        hour, node, last = (*more, *(i, "n1", "")[len(more):])
        text += f"{job}|run|{state}|{at(hour) if isinstance(hour, int) else hour}|{node}|{last}\n"
    return text


def events(*rows):
    return EVENTS + "".join(f"c|n{i}|{at(i)}|{end}|{state}|a|b|root\n"
                            for i, (state, end) in enumerate(rows))


def lanl(*ends, head=LANL):
    return head + "".join(f"20,{i},{day(i)},{day(i, True)}{end}\n" for i, end in enumerate(ends))


NF = "NODE_FAIL"
# text of a log; rows used, rows left out by reason
ROWS = {
    "a separator in a column behind": (
        jobs(*((i, NF, i, f"n{i % 8}", "a|b" if i % 2 else "") for i in range(40))), 40, {}),
    "separators in several columns": (
        "JobID|Comment|State|WorkDir|End|NodeList|SubmitLine\n"
        f"1|a|b|c|NODE_FAIL|/d|e|{at(1)}|n1|sbatch|x\n2||NODE_FAIL||{at(2)}|n2|\n", 2, {}),
    "lines that end within a column": (
        jobs((1, NF, 1)) + f"2|a\nb|NODE_FAIL|{at(2)}|n2|c\n3|r|NODE_FAIL|{at(3)}|n3|\n", 3, {}),
    "states in a name": (
        jobs(("1|FAILED", f"x|{NF}"), ("2|y", "COMPLETED", 2, "n1", "a|b")), 1,
        {"jobs that ended otherwise": 1}),
    "a separator at the end of rows alone": (
        jobs((1, NF, 1, "n1", "c|")) + jobs((2, NF, 2, "n2", "c|d|"), head=JOBS[:-1] + "|\n"), 2,
        {"heads that come again": 1}),
    "heads of another order": (
        jobs((1, NF, 1)) + f"State|JobID|NodeList|End\nNODE_FAIL|2|n2|{at(2)}\n", 2,
        {"heads that come again": 1}),
    "steps, arrays and heterogeneous jobs": (
        jobs(*((job, NF, 1, f"n{i}") for i, job in enumerate(
            "1 1.batch 1.extern 1.0 2_7 2_7.batch 2_[8-9%2] 3+0 3+1 3+1.0".split()))), 4,
        {"steps of jobs": 5, "parts of a job that counts already": 1}),
    "the same rows twice": (
        jobs((1, NF, 1), (2, NF, 2)) * 2, 2,
        {"heads that come again": 1, "parts of a job that counts already": 2}),
    "jobs that failed twice": (jobs((1, NF, 1), (1, NF, 2)), 2, {}),
    "words of Slurm": (
        jobs(*((i, state, i) for i, state in enumerate(
            ("CANCELLED by 1001", "CANCELLED+", "OUT_OF_ME+", "OUT_OF_MEMORY+", "TIMEOUT",
             "BOOT_FAIL", NF, "NODE_FA+", "NF"))),
             (20, "RUNNING", "Unknown"), (21, "PENDING", "Unknown", "None assigned"),
             (22, NF, "Unknown"), (23, NF, 50, "None assigned")), 3,
        {"jobs that ended otherwise": 6, "jobs that still run": 3, "jobs without nodes": 1}),
    "comments and empty rows": (
        f"# sacct of 2024\n\n{jobs(('#1', NF))}\n|||||\n2|r|NODE_FAIL|{at(2)}|n2|\n", 1,
        {"comments": 2, "empty rows": 3}),
    "saved again with quotes": (
        jobs((1, NF, 1, '"n[1,2]"'), (2, NF, 2)).replace("|", ","), 2, {}),
    "seconds of Slurm": (jobs((1, NF, "1709251200"), (2, NF, "1709251260")), 2, {}),
    "events of nodes": (
        events(("DOWN*", "Unknown"), ("DOWN+DRAIN", ""), ("IDLE+NOT_RESPONDING", "None"),
               ("DOWN+NEW_WORD", at(9)), ("IDLE+POWERING_DOWN", at(9)), ("POWERED_DOWN", at(9)),
               ("DRAIN$", at(9)))
        + f"c|n0|{at(0)}|{at(1)}|DOWN*|a|b|root\nc||{at(0)}|Unknown||Cluster Registered|\n", 4,
        {"events of another kind (drained, ..)": 3, "events without a node": 1,
         "failures that are there already": 1}),
    "lanl: empty rows": (lanl("", "", "") + ",,,\n,,,\n", 3, {"empty rows": 2}),
    "lanl: AM and PM, seconds, ISO, no end": (
        LANL + "20,1,3/1/2024 1:05 AM,3/1/2024 1:05:30 PM\n20,2,2024-03-02 01:00,\n", 2, {}),
    "lanl: semicolons, a head of other letters": (
        lanl("", head=LANL.lower()).replace(",", ";").replace(";0;", ';"0";'), 1, {}),
    "lanl: tabs, columns that are not there or too many": (
        lanl("", ",x,,", head=LANL[:-1] + ",cause\n").replace(",", "\t"), 2, {}),
    "lanl: quotes over lines, and one that stays open": (
        lanl(',"disk,\nfan"', ',"open', ',5" disk', head=LANL[:-1] + ",cause\n"), 3, {}),
    "plain: milliseconds": ("time,node\n1709251200000,a\n1709251260000,b\n", 2, {}),
    "plain: comments, heads, the same again": (
        '# a log\ntime,node\n"5",a\n5,a\ntime,node\n7,b,,\n,\n', 2,
        {"comments": 1, "heads that come again": 1, "empty rows": 1,
         "failures that are there already": 1}),
    "plain: under repair": ("0,a,100\n50,a,300\n200,a,210\n300,a,\n400,b\n", 3,
                            {"failures of nodes under repair": 2}),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_each_row_is_used_or_left_out_for_a_reason(tmp_path, name):
    text, used, left_out = ROWS[name]
    for data in (text, b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
                 text.encode("utf-16")):
        log = log_of(tmp_path, data)
        assert (log.rows["used"], log.rows["left_out"]) == (used, left_out)


def test_milliseconds_are_milliseconds(tmp_path):
    record = '{"node_id": "%s", "event_time": %s, "event_type": "fault_start"}'
    for first, then in (("1709251200000", "1709251260000"), ("1709251200", "1709251260"),
                        ("1709251200000000", "1709251260000000"),
                        ("2024-03-01 12:00:00 AM", "2024-03-01 12:01:00 AM"),
                        ("2024-03-01T00:00:00 UTC", "2024-03-01T01:01:00+01:00")):
        assert log_of(tmp_path, f"{first},a\n{then},b\n").times_s.tolist() == [0, 60]
        if first.isdigit():
            text = f"[{record % ('a', first)}, {record % ('b', then)}]"
            assert log_of(tmp_path, text).times_s.tolist() == [0, 60]
    assert "times are milliseconds since 1970" in log_of(tmp_path, "1709251200000,a\n").notes
    assert log_of(tmp_path, "0,a\n200000000000,b\n").times_s.tolist() == [0, 200_000_000_000]


def test_rows_that_cannot_be_read_are_counted_and_refused_above_one_percent(tmp_path):
    good = [(i, NF, i) for i in range(200)]
    text = jobs(*good, (300, NF, "yesterday"), (301, "NO_SUCH", 1))
    log = log_of(tmp_path, text)
    assert log.rows == {"read": 202, "used": 200, "left_out": {
        "rows whose End cannot be read": 1, "rows whose State cannot be read": 1}}
    first = f"the first row that cannot be read: {tmp_path}/log:202: column End: must be a date"
    assert first in "\n".join(log.notes)
    with pytest.raises(PlanError, match="log:202: column End: .*; 3 of 203 rows cannot be read"):
        log_of(tmp_path, text + f"302|r|NODE_FAIL|{at(2)}|n[1-|\n")
    # Rows of other systems do not count: they must not hide that this file is bad.
    with pytest.raises(PlanError, match="1 of 2 rows cannot be read"):
        log_of(tmp_path, LANL + f"1,1,soon,\n1,1,{day(1)},\n" + f"2,1,{day(1)},\n" * 300, "1")


def test_a_row_that_fits_in_two_ways_is_not_guessed(tmp_path):
    good = "".join(f"{i}|NODE_FAIL|{at(i)}||n1|\n" for i in range(150))
    log = log_of(tmp_path, f"JobID|State|End|Comment|NodeList|Reason\n{good}"
                 f"200|NODE_FAIL|{at(200)}|a|b|n2|\n201|COMPLETED|{at(201)}|a|b|n2|\n")
    assert log.names == ("n1",) and log.rows["left_out"] == {
        "rows whose NodeList cannot be read": 1, "jobs that ended otherwise": 1}


@pytest.mark.parametrize("seed", range(20))
def test_separators_anywhere_are_seen_through_or_counted(tmp_path, seed):
    """Columns in any order, free text with separators, states and dates in it: each failure is used
    with its own node and time, or its row counts as one that cannot be read.
    """
    draw = random.Random(seed)
    names = ["JobID", "JobName", "State", "End", "NodeList", "Constraints", "Comment", "WorkDir"]
    draw.shuffle(names)
    lines = ["|".join(names)]
    for job in range(300):
        words = ("", "a", "a|b", "|", "x|y|z", "FAILED|7")
        cells = {name: draw.choice(words) if draw.random() < 0.01 * seed else "a" for name in names}
        cells |= {"JobID": str(job), "State": NF, "End": at(job), "NodeList": f"n[{job}-999]"}
        lines.append("|".join(cells[name] for name in names))
    try:
        log = log_of(tmp_path, "\n".join(lines))
    except PlanError as refused:
        assert "rows cannot be read" in str(refused), f"seed {seed}"
        return
    first = min(int(name[1:]) for name in log.names)
    assert log.rows["read"] == 300
    for time, node in zip(log.times_s, log.nodes, strict=True):
        assert log.names[node] == f"n{first + round(time / 3600)}", f"seed {seed}"


def test_host_lists_of_several_numbers():
    for listed, names in (("rack[0-1]n[00-01]", "rack0n00 rack0n01 rack1n00 rack1n01"),
                          ("r[1,3][07-08]x,m", "r107x r108x r307x r308x m"),
                          ("a-[9-11]-ib", "a-9-ib a-10-ib a-11-ib")):
        assert slurm.hosts(listed) == names.split()
    for wrong in ("n[1-2", "n[[1]]", "n[1-99999][1-99999]", "a b", "n[]", "n[1-]"):
        with pytest.raises(BadRow, match="must be a list of nodes|names more than"):
            slurm.hosts(wrong)


@pytest.mark.parametrize("text, says", [
    (f"1|run|NODE_FAIL|{at(1)}|n1\n", "--noheader"),
    ("JobID  State  End  NodeList\n-----  -----  ---- -----\n1  NODE_FAIL  x  n1\n", "--parsable2"),
    (jobs((1, "COMPLETED"), ("1.batch", NF)), "holds no failure; rows of the log: 2 read, 0 used"),
])
def test_what_is_wrong_with_a_whole_table_is_said(tmp_path, text, says):
    (tmp_path / "log").write_text(text)
    assert says in run("replay", "--trace", tmp_path / "log", "--cost", 1)[2]


def test_clusters_are_named(tmp_path):
    text = events(*[("DOWN", "")] * 2).replace("c|n1", "b|n1")
    note = "the log holds the clusters b, c; all of them count, --system chooses one"
    assert note in log_of(tmp_path, text).notes
    assert log_of(tmp_path, text, "b").rows == {"read": 2, "used": 1, "left_out": {
        "other systems": 1}}
    for body, says in ((text, "must be one of b, c"), (jobs((1, NF)), "is for files with a")):
        with pytest.raises(PlanError, match=f"system {says}"):
            log_of(tmp_path, body, "d")


def test_commands_print_the_rows(tmp_path):
    path = tmp_path / "log"
    path.write_text(jobs(*((i, NF, 7 * i + i % 3, f"n{i}") for i in range(9))) + "#\n")
    advise = ("advise", "--nodes", 9, "--saved", 1e9, "--copy-bandwidth", 1e10, "--disk-bandwidth",
              1e9, "--network-bandwidth", 1e9, "--storage-bandwidth", 1e9)  # fmt: skip
    for words in (("replay", "--cost", 3), advise):
        found = result(*words, "--trace", path)
        assert found["rows"] == {"read": 10, "used": 9, "left_out": {"comments": 1}}
        says = "note: rows of the log: 10 read, 9 used, 1 left out: comments 1 (line 11 first)"
        assert says in run(*words, "--trace", path)[1]
