"""`backstay run --transparent --capture-files`: the contents of open files belong to the version.

Each version is requested, and each step of the program waits for a file; nothing depends on times.
"""

import os
import shutil

import pytest
from processes import wait_for
from ranks import HERE, line
from transparent import (  # noqa: F401 (two are fixtures)
    kill_at_random, kill_job, nothing_is_left, program, seed, start, undisturbed)

BEGIN = """
import os, time
rank = os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
def step(name):
    open(f"has.{rank}", "a").write(name + "\\n")
    while not os.path.exists(name):
        time.sleep(0.01)
"""
# Two files that it overwrites in place, of which one fits the pattern, and one that it removes.
STEPS = BEGIN + """
def at(file, place, text):
    os.pwrite(file.fileno(), text, place)
def content(file):
    return os.pread(file.fileno(), 1 << 20, 0)
held, other, gone = (open(f"{name}.{rank}", "w+b", 0)
                     for name in ("held", "other", "held.gone"))
for file in (held, other, gone):
    at(file, 0, b"before" * 2000)
    at(file, 50000, b"behind a hole")
held.seek(7)
saved = content(held)
step("saved")
print(content(held) == saved, content(gone) == saved, content(other) == saved, held.tell(),
      flush=True)
for file in (held, other, gone):
    at(file, 3, b"AFTER")
held.truncate(100)
at(other, 60000, b"more")
os.unlink(gone.name)
step("written")
"""


# Between two transactions it is saved, and within another one it is killed.
TRANSACTIONS = BEGIN + """
import sqlite3
database = sqlite3.connect("held.db", isolation_level=None)
run = lambda text: database.execute(text).fetchall()
run("pragma journal_mode=MODE")
run("pragma cache_size=5")
run("create table t(a integer primary key, b int, c text)")
run("with recursive c(n) as (select 1 union all select n+1 from c where n<5000)"
    " insert into t select n, 0, hex(zeroblob(100)) from c")
step("saved")
run("update t set b=b+1, c=c||'yyyyyyyy' where a<2500")
run("begin")
run("update t set b=b+10, c=c||hex(zeroblob(30)) where a%7<3")
step("written")
run("commit")
print(run("select count(*), sum(b), sum(length(c)) from t"), run("pragma integrity_check"))
"""
TRANSACTED = "[(5000, 23939, 1148632)] [('ok',)]\n"

# When it is saved, SQLite has a journal open that does not begin as one: it has not been synced, or
# a transaction has ended.
HAS_JOURNAL_OPEN = BEGIN + """
import sqlite3
database = sqlite3.connect("held.db", isolation_level=None)
run = lambda *texts: [database.execute(text).fetchall() for text in texts][-1]
run("pragma cache_size=2", PRAGMAS, "create table t(a int)", "insert into t values (5)")
run(BEFORE)
step("saved")
run(FIRST, "update t set a=a+1", "insert into t select 7 from (with recursive c(n) as"
    " (select 1 union all select n+1 from c where n<5000) select n from c)", LAST)
step("written")
if database.in_transaction:
    run("commit")
print(run("select count(*), sum(a) from t"), run("pragma integrity_check"))
"""

# A process that was killed has left a log, and nobody has read the database since.
LEFT = BEGIN + """
import sqlite3, subprocess
subprocess.run(["/usr/bin/python3", "-c", "import os, sqlite3;"
    "database = sqlite3.connect('held.db', isolation_level=None);"
    "[database.execute(text).fetchall() for text in ('pragma journal_mode=WAL',"
    " 'create table t(a int)', 'insert into t values (5)')]; os._exit(0)"], check=True)
database = sqlite3.connect("held.db", isolation_level=None)
run = lambda text: database.execute(text).fetchall()
step("saved")
print(run("select * from t"), flush=True)
run("update t set a=a+1")
run("pragma wal_checkpoint(truncate)")
step("written")
"""

# A log and its index go away where a database is closed, and others come where it is opened again.
CLOSES = BEGIN + """
import sqlite3
def run(*texts):
    return [database.execute(text).fetchall() for text in texts][-1]
database = sqlite3.connect("held.db", isolation_level=None)
run("pragma journal_mode=wal", "create table t(a int)", "insert into t values (5)")
step("saved")
print(run("select * from t"), flush=True)
run("update t set a=a+1")
database.close()
if AGAIN:
    database = sqlite3.connect("held.db", isolation_level=None)
    run("update t set a=a+1")
step("written")
"""

# CHANGE is what it does to the path; MAPPED how it maps the file.
MAPS = BEGIN + """
import mmap
open("other", "w").write("another file's")
held = open("held", "w+b", 0)
held.write(b"before" * 2000)
mapped = mmap.mmap(held.fileno(), 0, access=mmap.MAPPED)
mapped[5000:5006] = b"MAPPED"
step("saved")
print(mapped[:6], mapped[5000:5006], mapped[-6:], held.tell(), flush=True)
mapped[:5] = b"AFTER"
print(os.pread(held.fileno(), 6, 0), open("other").read(), flush=True)
CHANGE
step("written")
"""

# A file of 1 GiB, with data at three places. Later data fill a hole, and stand behind the end.
HOLES = BEGIN + """
held = open("held", "w+b", 0)
places = (100, 5 << 20, (1 << 30) - 7)
for place in places:
    os.pwrite(held.fileno(), b"before!", place)
step("saved")
print(all(os.pread(held.fileno(), 7, place) == b"before!" for place in places),
      os.pread(held.fileno(), 9, 2 << 20) == bytes(9), os.stat("held").st_size == 1 << 30,
      flush=True)
for place in (0, 2 << 20, 1 << 30):
    os.pwrite(held.fileno(), b"AFTER" * 50, place)
step("written")
"""

# It has its standard output, or error, go to a file of its own.
REDIRECTS = BEGIN + """
log = os.open("held.log", os.O_WRONLY | os.O_CREAT, 0o644)
os.dup2(log, NUMBER)
os.close(log)
os.write(NUMBER, b"one\\n")
step("saved")
os.write(NUMBER, b"two\\n")
step("written")
os.write(NUMBER, b"three\\n")
"""

# Words that look like a lock which the program holds: glibc's robust mutex.
LOCK = BEGIN + """
import struct
held = open("held", "w+b", 0)
held.write(struct.pack("5I", os.getpid(), 0, os.getpid(), 1, 16) * 100)
before = os.getpid()
step("saved")
print(os.pread(held.fileno(), 20, 0).hex(" ", 4) == " ".join(
    one.to_bytes(4, "little").hex() for one in (before, 0, before, 1, 16)), flush=True)
step("written")
"""


def steps_of(world, rank=0):
    path = world.folder / f"has.{rank}"
    return path.read_text().split() if path.exists() else []


class Written:
    """A program that is saved, writes on, and is killed with all that watches it."""

    def __init__(self, world, words, ranks=1, pattern="held*"):
        self.world, self.words, self.ranks = world, words, ranks
        self.options = ["--job", "app", "--capture-files", pattern]
        world.env.update(BACKSTAY_CHECKPOINT_POLICY="request", BACKSTAY_AGENT_IDLE_EXIT_S="60")
        running = start(world, words, *self.options, "--retries", 0)
        self.wait_for("saved", running)
        done = world.run("checkpoint", "app", "--wait")
        assert done.returncode == 0, done.stderr
        (world.folder / "saved").touch()
        self.wait_for("written", running)
        kill_job(world, running)
        (world.folder / "written").touch()

    def wait_for(self, step, running):
        wait_for(lambda: running.poll() is not None or
                 all(step in steps_of(self.world, rank) for rank in range(self.ranks)), step)
        assert running.poll() is None, running.communicate()

    def goes_on(self):
        return self.world.run("run", "--transparent", *self.options, "--", *self.words)


@pytest.mark.parametrize("snapshot", ["copy", "fork"])
def test_what_is_overwritten_in_place_comes_back(world, snapshot):
    world.env["BACKSTAY_CHECKPOINT_SNAPSHOT"] = snapshot
    written = Written(world, program(world, STEPS))
    assert not (world.folder / "held.gone.0").exists()
    for agent in ("", "stop"):  # out of memory, then from the disk
        if agent:
            world.run("agent", agent)
        done = written.goes_on()
        assert (done.returncode, done.stdout) == (0, "True True False 7\n"), done
    assert (world.folder / "held.0").stat().st_size == 100  # the program went on
    assert (world.folder / "other.0").stat().st_size == 60004


@pytest.mark.skipif(not HERE, reason="no launcher is installed")
@pytest.mark.parametrize("launcher", HERE)
def test_each_rank_has_its_own(world, launcher):
    written = Written(world, line(launcher, 2, *program(world, STEPS)), ranks=2)
    done = written.goes_on()
    # A launcher may divide the ranks' lines.
    words = sorted(done.stdout.split())
    assert (done.returncode, words) == (0, sorted("True True False 7 ".split() * 2)), done


def test_a_pattern_that_fits_nothing_is_told_with_the_first_version(world):
    """Also where the job goes on in another folder, in which a relative pattern is another one."""
    written = Written(world, program(world, "import os\nos.chdir(os.path.dirname(__file__))\n"
                                     + STEPS))
    (world.folder / "written").unlink()
    (world.folder / "has.0").unlink()
    (world.folder / "other").mkdir()
    running = start(world, written.words, *written.options, before=["env", "-C", "other"])
    written.wait_for("written", running)
    assert world.run("checkpoint", "app", "--wait").returncode == 0
    (world.folder / "written").touch()
    _, told = running.communicate(timeout=60)
    assert "this version has no contents of files: none that the program has open for writing " \
           f"fits --capture-files ({world.folder}/other/held*)" in told, told


def test_more_files_than_an_image_takes_are_told(world):
    text = BEGIN + ("import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (2000, 2000))\n"
                    "files = [open(f'held.{one}', 'w') for one in range(1025)]\nstep('saved')\n")
    world.env.update(BACKSTAY_CHECKPOINT_POLICY="daly")
    running = start(world, program(world, text), "--job", "app", "--interval", 0.1,
                    "--capture-files", "held*", before=["timeout", 60])
    for line_told in running.stderr:
        if "cannot be saved now" in line_told:
            break
    (world.folder / "saved").touch()
    running.communicate(timeout=60)
    assert "more than 1024 files that it has open fit --capture-files" in line_told


@pytest.mark.parametrize("pattern, fits", [("held*", True), ("hold*", False)])
def test_a_pattern_that_fits_nothing_is_told(world, pattern, fits):
    world.env.update(BACKSTAY_CHECKPOINT_POLICY="request")
    running = start(world, program(world, STEPS), "--job", "app", "--capture-files", pattern)
    wait_for(lambda: running.poll() is not None or "saved" in steps_of(world), "its first step")
    assert world.run("checkpoint", "app", "--wait").returncode == 0
    for name in ("saved", "written"):
        (world.folder / name).touch()
    _, told = running.communicate(timeout=60)
    assert running.returncode == 0 and ("no file fits" in told) == (not fits), told


def test_a_file_that_cannot_be_written_back_ends_the_restart_and_nothing_else(world):
    written = Written(world, program(world, STEPS))
    (world.folder / "held.gone.0").mkdir()
    done = written.goes_on()
    assert done.returncode != 0 and "held.gone.0" in done.stderr, done.stderr
    (world.folder / "held.gone.0").rmdir()
    done = written.goes_on()
    assert (done.returncode, done.stdout) == (0, "True True False 7\n"), done


def test_a_folder_that_is_missing_is_named(world):
    text = STEPS.replace('os.unlink(gone.name)', 'os.rename("in", "moved")').replace(
        '(open(f"{name}.{rank}", "w+b", 0)', '(open(f"in/{name}.{rank}", "w+b", 0)').replace(
        "held, other", "os.mkdir('in')\nheld, other", 1)
    written = Written(world, program(world, text), pattern="in/held*")
    done = written.goes_on()
    assert done.returncode != 0, done
    assert f"{world.folder}/in/, the folder of {world.folder}/in/held.0, is missing" in done.stderr
    (world.folder / "moved").rename(world.folder / "in")
    done = written.goes_on()
    assert (done.returncode, done.stdout) == (0, "True True False 7\n"), done


def test_a_damaged_version_changes_no_file(world):
    written = Written(world, program(world, STEPS))
    world.run("agent", "stop")
    segment = next((world.dir / "app").glob("v*1/*segment*"))
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    segment.write_bytes(content)
    before = (world.folder / "held.0").read_bytes()
    done = written.goes_on()
    assert done.returncode != 0 and "does not match its checksum" in done.stderr, done.stderr
    assert (world.folder / "held.0").read_bytes() == before
    assert not (world.folder / "held.gone.0").exists()


def test_a_file_that_is_made_anew_has_its_mode(world):
    text = STEPS.replace("held.seek(7)", "held.seek(7)\nos.fchmod(gone.fileno(), 0o640)")
    text = text.replace('print(content(held)', 'print(oct(os.fstat(gone.fileno()).st_mode))\n'
                                               'print(content(held)')
    done = Written(world, program(world, text)).goes_on()
    assert (done.returncode, done.stdout) == (0, "0o100640\nTrue True False 7\n"), done


@pytest.mark.parametrize("mode", ["delete", "persist", "wal"])
def test_a_journal_of_a_later_transaction_does_not_spoil_a_database(world, mode):
    done = Written(world, program(world, TRANSACTIONS.replace("MODE", mode))).goes_on()
    assert (done.returncode, done.stdout) == (0, TRANSACTED), done


EXCLUSIVE = "'pragma locking_mode=exclusive', 'pragma journal_mode={}'"
LOG = "'pragma journal_mode=wal'"
CHANGE = "'begin', 'update t set a=4', 'update t set a=5'"
NO_LOG = "'pragma wal_checkpoint(truncate)'"


@pytest.mark.parametrize("pragmas, before, first, last", [
    ("''", CHANGE, "''", "''"),
    ("''", CHANGE, "''", "'commit'"),
    (LOG, NO_LOG, "'begin'", "''"),
    (LOG, NO_LOG, "'begin'", "'commit'"),
    (EXCLUSIVE.format("delete"), "''", "'begin'", "''"),
    (EXCLUSIVE.format("persist"), "''", "'begin'", "''"),
    (EXCLUSIVE.format("truncate"), "''", "'begin'", "''"),
], ids=["within", "committed", "log", "log committed", "delete", "persist", "truncate"])
def test_a_journal_that_was_open_comes_back_by_the_name_of_its_database(
        world, pragmas, before, first, last):
    text = HAS_JOURNAL_OPEN
    for name, value in (("PRAGMAS", pragmas), ("BEFORE", before), ("FIRST", first), ("LAST", last)):
        text = text.replace(name, value)
    done = Written(world, program(world, text), pattern="held.db").goes_on()
    assert (done.returncode, done.stdout) == (0, "[(5001, 35006)] [('ok',)]\n"), done


def test_a_log_that_was_there_and_not_open_comes_back(world):
    done = Written(world, program(world, LEFT)).goes_on()
    assert (done.returncode, done.stdout) == (0, "[(5,)]\n"), done


@pytest.mark.parametrize("again", [False, True])
def test_a_database_with_a_log_that_was_closed_comes_back(world, again):
    text = CLOSES.replace("AGAIN", str(again))
    done = Written(world, program(world, text), pattern="held.db").goes_on()
    assert (done.returncode, done.stdout) == (0, "[(5,)]\n"), done


@pytest.mark.parametrize("how", ["WRITE", "COPY"])
@pytest.mark.parametrize("change", [
    "os.unlink('held')", "held.truncate(10)", "os.rename('other', 'held')"])
def test_a_file_that_was_mapped_too(world, how, change):
    text = MAPS.replace("MAPPED)", f"ACCESS_{how})").replace("CHANGE", change)
    written = Written(world, program(world, text))
    (world.folder / "other").write_text("another file's")
    done = written.goes_on()
    first = b"AFTERe" if how == "WRITE" else b"before"
    assert (done.returncode, done.stdout) == (
        0, f"b'before' b'MAPPED' b'before' 12000\n{first} another file's\n"), done


@pytest.mark.parametrize("change", [
    "os.symlink('other', 'held')", "os.link('other', 'held')", "os.symlink('/tmp', 'held')",
    "os.path.exists('pipe') or os.mkfifo('pipe'); os.symlink('pipe', 'held')"])
def test_another_file_that_has_come_to_the_path_is_not_written_to(world, change):
    text = MAPS.replace("MAPPED)", "ACCESS_WRITE)")
    text = text.replace("CHANGE", f"os.unlink('held'); {change}")
    done = Written(world, program(world, text)).goes_on()
    assert done.returncode == 0 and (world.folder / "other").read_text() == "another file's", done


@pytest.mark.parametrize("snapshot", ["copy", "fork"])
def test_holes_stay_holes(world, snapshot):
    world.env["BACKSTAY_CHECKPOINT_SNAPSHOT"] = snapshot
    done = Written(world, program(world, HOLES)).goes_on()
    assert (done.returncode, done.stdout) == (0, "True True True\n"), done
    assert (world.folder / "held").stat().st_blocks < 1000


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("pattern", ["held*", "none*"])
def test_an_output_that_the_program_has_redirected_itself(world, number, pattern):
    text = REDIRECTS.replace("NUMBER", str(number))
    done = Written(world, program(world, text), pattern=pattern).goes_on()
    assert (done.returncode, done.stdout) == (0, ""), done
    assert (world.folder / "held.log").read_text() == "one\ntwo\nthree\n"


def test_what_looks_like_a_lock_stays_as_it_was(world):
    done = Written(world, program(world, LOCK)).goes_on()
    assert (done.returncode, done.stdout) == (0, "True\n"), done


def test_a_database_killed_at_random(world):
    if not shutil.which("sqlite3"):
        pytest.skip("no sqlite3")
    query = world.folder / "query"
    query.write_text(
        "create table t(a int, b text);\n"
        "with recursive c(n) as (select 1 union all select n+1 from c where n<400000)"
        " insert into t select n, hex(n*7919) from c;\n"
        "create index i on t(b);\n"
        "select count(*), sum(length(b)), max(b) from t;\n"
        "pragma integrity_check;\n")
    words = ["sqlite3", world.folder / "data.db", f".read {query}"]
    expected = undisturbed(["sqlite3", ":memory:", f".read {query}"], world.folder)
    out = world.folder / "out"
    for _ in range(5):
        for path in world.folder.glob("data.db*"):
            path.unlink()
        with open(out, "wb") as file:
            running = start(world, words, "--job", "app", "--fresh", "--interval", 0.1,
                            "--retries", 6, "--capture-files", "data.db*", out=file)
            killed = kill_at_random(world, running, 3, "backstay-boot")
            _, told = running.communicate(timeout=100)
        assert (running.returncode, out.read_bytes()) == (0, expected), told
        if killed:
            return
    raise AssertionError("the program had ended before the first kill, five times")
