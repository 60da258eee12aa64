"""Rows of failure logs as people have them: none is dropped or counted without a word, whatever its
columns hold.
"""

import random

import pytest
from backstay.plan.check import PlanError
from backstay.plan.traces import read, slurm
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


# text of a log; rows used, rows left out by reason
ROWS = {
    "a separator in a column behind": (
        JOBS + "".join(f"{i}|run|NODE_FAIL|{at(i)}|n{i % 8}|{'a|b' if i % 2 else ''}\n"
                       for i in range(40)), 40, {}),
    "separators in several columns": (
        "JobID|Comment|State|WorkDir|End|NodeList|SubmitLine\n"
        + f"1|a|b|c|NODE_FAIL|/d|e|{at(1)}|n1|sbatch|x\n2||NODE_FAIL||{at(2)}|n2|\n", 2, {}),
    "states in a name": (
        JOBS + f"1|FAILED|x|NODE_FAIL|{at(1)}|n1|\n2|y|COMPLETED|{at(2)}|n2|a|b\n", 1,
        {"jobs that ended otherwise": 1}),
    "a separator at the end of rows alone": (
        JOBS + f"1|r|NODE_FAIL|{at(1)}|n1|c|\n" + JOBS[:-1] + "|\n"
        + f"2|r|NODE_FAIL|{at(2)}|n2|c|d|\n", 2, {"heads that come again": 1}),
    "heads of another order": (
        JOBS + f"1|r|NODE_FAIL|{at(1)}|n1|\nState|JobID|NodeList|End\nNODE_FAIL|2|n2|{at(2)}\n", 2,
        {"heads that come again": 1}),
    "steps, arrays and heterogeneous jobs": (
        JOBS + "".join(f"{job}|r|NODE_FAIL|{at(1)}|n{i}|\n" for i, job in enumerate(
            ("1", "1.batch", "1.extern", "1.0", "2_7", "2_7.batch", "2_[8-9%2]", "3+0", "3+1", "3+1.0"))),
        4, {"steps of jobs": 5, "parts of a job that counts already": 1}),
    "the same rows twice": (
        (JOBS + f"1|r|NODE_FAIL|{at(1)}|n1|\n2|r|NODE_FAIL|{at(2)}|n2|\n") * 2, 2,
        {"heads that come again": 1, "parts of a job that counts already": 2}),
    "jobs that failed twice": (JOBS + "".join(f"1|r|NODE_FAIL|{at(i)}|n1|\n" for i in (1, 2)), 2, {}),
    "words of Slurm": (
        JOBS + "".join(f"{i}|r|{state}|{at(i)}|n1|\n" for i, state in enumerate(
            ("CANCELLED by 1001", "CANCELLED+", "OUT_OF_ME+", "OUT_OF_MEMORY+", "TIMEOUT",
             "BOOT_FAIL", "NODE_FAIL", "NODE_FA+", "NF")))
        + "20|r|RUNNING|Unknown|n1|\n21|r|PENDING|Unknown|None assigned|\n"
          f"22|r|NODE_FAIL|Unknown|n1|\n23|r|NODE_FAIL|{at(50)}|None assigned|\n", 3,
        {"jobs that ended otherwise": 6, "jobs that still run": 3, "jobs without nodes": 1}),
    "comments and empty rows": (
        f"# sacct of 2024\n\n{JOBS}#1|r|NODE_FAIL|{at(1)}|n1|\n\n|||||\n2|r|NODE_FAIL|{at(2)}|n2|\n",
        1, {"comments": 2, "empty rows": 3}),
    "seconds and milliseconds of Slurm": (
        JOBS + "1|r|NODE_FAIL|1709251200|n1|\n2|r|NODE_FAIL|1709251260|n1|\n", 2, {}),
    "events of nodes": (
        EVENTS + f"c||{at(0)}|Unknown||Cluster Registered TRES|\n" + "".join(
            f"c|n{i}|{at(i)}|{end}|{state}|a|b|root\n" for i, (state, end) in enumerate(
                (("DOWN*", "Unknown"), ("DOWN+DRAIN", ""), ("IDLE+NOT_RESPONDING", "None"),
                 ("DOWN+NEW_WORD", at(9)), ("IDLE+POWERING_DOWN", at(9)), ("POWERED_DOWN", at(9)),
                 ("DRAIN$", at(9))))) + f"c|n0|{at(0)}|{at(1)}|DOWN*|a|b|root\n", 4,
        {"events without a node": 1, "events of another kind (drained, ..)": 3,
         "failures that are there already": 1}),
    "lanl: empty rows": (
        LANL + "".join(f"20,{i},{day(i)},{day(i, True)}\n" for i in range(4)) + ",,,\n,,,\n", 4,
        {"empty rows": 2}),
    "lanl: AM and PM, seconds, ISO, no end": (
        LANL + "20,1,3/1/2024 1:05 AM,3/1/2024 1:05:30 PM\n20,2,2024-03-02 01:00,\n", 2, {}),
    "lanl: semicolons, a head of other letters": (
        LANL.lower().replace(",", ";") + f'20;"1";{day(1)};{day(1, True)}\n', 1, {}),
    "lanl: tabs, columns that are not there or too many": (
        (LANL[:-1] + ",cause\n" + f'20,1,{day(1)},{day(1, True)}\n20,2,{day(2)},{day(2, True)},x,,\n')
        .replace(",", "\t"), 2, {}),
    "lanl: quotes over lines, and one that stays open": (
        LANL[:-1] + ",cause\n" + f'20,1,{day(1)},{day(1, True)},"disk,\nfan"\n20,2,{day(2)},{day(2, True)},"open\n'
        + f'20,3,{day(3)},{day(3, True)},5" disk\n', 3, {}),
    "plain: milliseconds": ("time,node\n1709251200000,a\n1709251260000,b\n", 2, {}),
    "plain: comments, heads, the same again": (
        '# a log\ntime,node\n"5",a\n5,a\ntime,node\n7,b,,\n,\n', 2,
        {"comments": 1, "heads that come again": 1, "failures that are there already": 1,
         "empty rows": 1}),
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
    hbd = '[{"node_id": "x", "event_time": %s, "event_type": "fault_start"}, {"node_id": "y", "event_time": %s, "event_type": "fault_start"}]'
    for text in ("1709251200000,a\n1709251260000,b\n", hbd % (1709251200000, 1709251260000),
                 hbd % (1709251200, 1709251260), "1709251200000000,a\n1709251260000000,b\n",
                 "2024-03-01 12:00:00 AM,a\n2024-03-01 12:01:00 AM,b\n",
                 "2024-03-01T00:00:00 UTC,a\n2024-03-01T01:01:00+01:00,b\n"):
        assert log_of(tmp_path, text).times_s.tolist() == [0, 60]
    assert "times are milliseconds since 1970" in log_of(tmp_path, "1709251200000,a\n").notes
    assert log_of(tmp_path, "0,a\n200000000000,b\n").times_s.tolist() == [0, 200_000_000_000]


def test_rows_that_cannot_be_read_are_counted_and_refused_above_one_percent(tmp_path):
    good = "".join(f"{i}|r|NODE_FAIL|{at(i)}|n1|\n" for i in range(200))
    text = f"{JOBS}{good}300|r|NODE_FAIL|yesterday|n1|\n301|r|NO_SUCH|{at(1)}|n1|\n"
    log = log_of(tmp_path, text)
    assert log.rows == {"read": 202, "used": 200, "left_out": {"rows whose End cannot be read": 1,
                                                               "rows whose State cannot be read": 1}}
    assert f"the first row that cannot be read: {tmp_path}/log:202: column End: must be a date such as" in "\n".join(log.notes)
    with pytest.raises(PlanError, match="log:202: column End: .*; 3 of 203 rows cannot be read"):
        log_of(tmp_path, text + f"302|r|NODE_FAIL|{at(2)}|n[1-|\n")
    # What was not asked for is no reason to take a bad file for a good one.
    with pytest.raises(PlanError, match="1 of 2 rows cannot be read"):
        log_of(tmp_path, LANL + f"1,1,soon,\n1,1,{day(1)},\n" + f"2,1,{day(1)},\n" * 300, "1")


def test_a_row_that_fits_in_two_ways_is_not_guessed(tmp_path):
    head = "JobID|State|End|Comment|NodeList|Reason\n"
    good = "".join(f"{i}|NODE_FAIL|{at(i)}||n1|\n" for i in range(150))
    log = log_of(tmp_path, f"{head}{good}200|NODE_FAIL|{at(200)}|a|b|n2|\n201|COMPLETED|{at(201)}|a|b|n2|\n")
    assert log.rows["left_out"] == {"rows whose NodeList cannot be read": 1,
                                    "jobs that ended otherwise": 1} and log.names == ("n1",)


@pytest.mark.parametrize("seed", range(20))
def test_separators_anywhere_are_seen_through_or_counted(tmp_path, seed):
    """Columns in any order, free text with separators, states and dates in it: each failure is used
    with its own node and time, or its row counts as one that cannot be read.
    """
    draw = random.Random(seed)
    names = ["JobID", "JobName", "State", "End", "NodeList", "Constraints", "Comment", "WorkDir"]
    draw.shuffle(names)
    true, lines = {}, ["|".join(names)]
    for job in range(300):
        words = ("", "a", "a|b", "|", "x|y|z", "FAILED|7")
        cells = {name: draw.choice(words) if draw.random() < 0.01 * seed else "a" for name in names}
        cells |= {"JobID": str(job), "State": "NODE_FAIL", "End": at(job), "NodeList": f"n[{job}-999]"}
        true[3600.0 * job] = f"n{job}"
        lines.append("|".join(cells[name] for name in names))
    path = tmp_path / "log"
    path.write_text("\n".join(lines))
    try:
        log = read.log(path)
    except PlanError as refused:
        assert "rows cannot be read" in str(refused), f"seed {seed}"
        return
    begin = min(time for time, name in true.items() if name in log.names)
    assert log.rows["used"] + sum(log.rows["left_out"].values()) == 300
    for time, node in zip(log.times_s, log.nodes, strict=True):
        assert true[time + begin] == log.names[node], f"seed {seed}"


def test_host_lists_of_several_numbers():
    for listed, names in (("rack[0-1]node[00-01]", ["rack0node00", "rack0node01", "rack1node00", "rack1node01"]),
                          ("r[1,3][07-08]x,m", ["r107x", "r108x", "r307x", "r308x", "m"]),
                          ("a-[9-11]-ib", ["a-9-ib", "a-10-ib", "a-11-ib"])):
        assert slurm.hosts(listed) == names
    for wrong in ("n[1-2", "n[[1]]", "n[1-99999][1-99999]", "a b", "n[]", "n[1-]"):
        with pytest.raises(Exception, match="must be a list of nodes|names more than"):
            slurm.hosts(wrong)


def test_a_table_without_its_head_or_without_separators_says_so(tmp_path):
    path = tmp_path / "log"
    path.write_text(f"1|run|NODE_FAIL|{at(1)}|n1\n")
    assert "--noheader" in run("replay", "--trace", path, "--cost", 1)[2]
    path.write_text("JobID  State  End  NodeList\n-----  -----  ---- -----\n1  NODE_FAIL  x  n1\n")
    assert "--parsable2" in run("replay", "--trace", path, "--cost", 1)[2]
    path.write_text(JOBS + f"1|r|COMPLETED|{at(1)}|n1|\n1.batch|r|COMPLETED|{at(1)}|n1|\n")
    says = run("replay", "--trace", path, "--cost", 1)[2]
    assert "holds no failure" in says and "jobs that ended otherwise 1" in says


def test_clusters_are_named(tmp_path):
    text = EVENTS + "".join(f"{c}|n1|{at(i)}|{at(i)}|DOWN|r|u\n" for i, c in enumerate("abab"))
    assert "the log holds the clusters a, b; all of them count, --system chooses one" in log_of(tmp_path, text).notes
    assert log_of(tmp_path, text, "b").rows == {"read": 4, "used": 2, "left_out": {"other systems": 2}}
    for body, system in ((text, "c"), (JOBS + f"1|r|NODE_FAIL|{at(1)}|n1|\n", "c")):
        with pytest.raises(PlanError, match="system (must be one of a, b|is for files with a column Cluster)"):
            log_of(tmp_path, body, system)


def test_commands_print_the_rows(tmp_path):
    path = tmp_path / "log"
    path.write_text(JOBS + "".join(f"{i}|r|NODE_FAIL|{at(7 * i + i % 3)}|n{i}|\n" for i in range(9)) + "#\n")
    advise = ("advise", "--nodes", 9, "--saved", 1e9, "--copy-bandwidth", 1e10, "--disk-bandwidth",
              1e9, "--network-bandwidth", 1e9, "--storage-bandwidth", 1e9)  # fmt: skip
    for words in (("replay", "--cost", 3), advise):
        found = result(*words, "--trace", path)
        assert found["rows"] == {"read": 10, "used": 9, "left_out": {"comments": 1}}
        says = "note: rows of the log: 10 read, 9 used, 1 left out: comments 1 (line 11 first)"
        assert says in run(*words, "--trace", path)[1]
