"""Files of the user: written whole or not at all, errors that say what to do; files with a byte
order mark; words beside numbers.
"""

import contextlib
import errno
import gzip
import lzma
import os
import pathlib
import pty
import resource
import stat
import subprocess
import sys

import pytest
from backstay.cli.plan import output
from backstay.plan import files
from backstay.plan.words import counted, plural, sentence
from runner import result, run, strict

ADVISE = ("advise", "--nodes", 64, "--saved", "16e9", "--storage-bandwidth", "10e9", "--mtti",
          43200, "--copy-bandwidth", "5e9",
          "--disk-bandwidth", "1e9", "--network-bandwidth", "3e9")  # fmt: skip
BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"


@pytest.fixture
def little_room():
    """No file of this process may grow beyond 4 KiB: writing fails in the middle, as on a full
    disk.
    """
    with contextlib.suppress(ImportError):
        import matplotlib.font_manager  # noqa: F401  writes a list of fonts when it is new on a machine
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


# Whole or not at all
# -------------------------------------------------------------------------------------------------

WRITERS = {"figures": ("figures", "--only", "004-speed-up", "--out"),
           "picture": (*ADVISE, "--picture"), "page": ("explore", "-o")}
FILES = {"figures": "004-speed-up.png", "picture": "a.svg", "page": "a.html"}


def words_for(kind, folder):
    if kind in ("figures", "picture"):
        pytest.importorskip("matplotlib")
    else:
        pytest.importorskip("plotly")
    return (*WRITERS[kind], folder if kind == "figures" else folder / FILES[kind])


@pytest.mark.parametrize("kind", WRITERS)
def test_where_writing_fails_the_old_file_stays_and_nothing_else(kind, tmp_path, little_room):
    words, file = words_for(kind, tmp_path), tmp_path / FILES[kind]
    file.write_text("old")
    code, out, err = run(*words)
    assert (code, out) == (1, "") and err.count("\n") == 1
    assert err.startswith(f"backstay plan {words[0]}: {file}: cannot be written: File too large; "
                          f"raise the limit of file sizes")
    assert [one.name for one in tmp_path.iterdir()] == [file.name] and file.read_text() == "old"
    code, out, _ = run(*words, "--json")
    assert code == 1 and strict(out)["error"]["code"] == "io"


@pytest.mark.parametrize("kind", WRITERS)
def test_a_folder_that_is_not_there_and_cannot_be_made(kind):
    file = words_for(kind, pathlib.Path("/proc/none"))
    code, out, err = run(*file)
    assert (code, out) == (1,
                           "") and err.count("\n") == 1 and "/proc/none" in err and "make the folder first, or choose another place" in err


@pytest.mark.skipif(not pathlib.Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_named():
    pytest.importorskip("plotly")
    code, _, err = run("explore", "-o", "/dev/full")
    assert code == 1 and err == ("backstay plan explore: /dev/full: cannot be written: No space "
                                 "left on device; make room there, or "
                                 "choose another place\n")  # fmt: skip
    with open("/dev/full", "w") as full, pytest.raises(files.WriteError,
                                                       match="standard output: cannot be written: "
                                                             "No space left"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdout", full)
            output.say("x" * 100_000)


@pytest.mark.parametrize("number, advice", [
    (errno.ENOSPC, "make room there, or choose another place"),
    (errno.EDQUOT, "make room there, or choose another place"),
    (errno.EACCES, "choose a place where you may write"),
    (errno.EPERM, "choose a place where you may write"),
    (errno.EROFS, "choose a place on a disk that may be written to"),
    (errno.EIO, "choose another place")])
def test_the_advice_fits_the_reason(number, advice):
    said = str(files.WriteError("x.npy", OSError(number, os.strerror(number))))
    assert said == f"x.npy: cannot be written: {os.strerror(number)}; {advice}"


def test_whole_writes_into_nobodys_file(tmp_path):
    """Not even where its own name, while it writes, is a link to one."""
    others, target = tmp_path / "others", tmp_path / "target"
    others.write_text("precious")
    for link in (os.symlink, os.link):
        link(others, tmp_path / f".backstay-{os.getpid()}.tmp")
        with files.whole(target) as begun:
            begun.write_text("new")
        assert (target.read_text(), others.read_text()) == ("new", "precious")
        assert target.stat().st_nlink == 1 and not target.is_symlink()


def test_whole_replaces_files_only(tmp_path):
    """Not a device (as root, /dev/full would be gone), and not a link; rights are those of any new
    file.
    """
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        with files.whole(pipe) as begun:
            begun.write_text("page")
        assert reader.communicate(timeout=30)[0] == "page"
    assert pipe.is_fifo()
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    with files.whole(link) as begun:
        begun.write_text("new")
        assert target.read_text() == "old"
    assert link.is_symlink() and target.read_text() == "new"
    (tmp_path / "plain").write_text("")
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_whole_leaves_nothing_when_the_writer_fails(tmp_path):
    with pytest.raises(KeyboardInterrupt), files.whole(tmp_path / "a") as begun:
        begun.write_text("half")
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_reading_names_the_file_also_where_the_system_does_not():
    with pytest.raises(OSError) as raised:
        files.read_bytes("/proc/self/mem")  # opens; reading fails
    assert raised.value.filename == "/proc/self/mem"


def test_what_has_no_end_is_not_read_to_it(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "READ_MAX", 2**20)
    packed = {"zeros": pathlib.Path("/dev/zero"), "gz": tmp_path / "log.gz",
              "xz": tmp_path / "log.xz"}
    packed["gz"].write_bytes(gzip.compress(bytes(2**22)))
    packed["xz"].write_bytes(lzma.compress(bytes(2**22)))
    for path in packed.values():
        code, out, err = run("replay", "--trace", path, "--cost", 3)
        assert (code, out, err) == (1, "", f"backstay plan replay: {path}: larger than 1 MiB\n")


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full"])
def test_without_a_stderr_the_output_is_json_still(stderr):
    line = f"exec {sys.executable} -m backstay.cli plan interval --cost -3 --mtti 5 --json {stderr}"
    done = subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 2 and "--cost" in strict(done.stdout)["error"]["message"]


def test_without_a_home_pictures_are_drawn_in_silence(tmp_path):
    pytest.importorskip("matplotlib")
    kept = {key: value for key,
            value in os.environ.items() if key not in ("MPLCONFIGDIR", "XDG_CONFIG_HOME",
                                                       "XDG_CACHE_HOME")}
    words = [sys.executable, "-m", "backstay.cli", "plan", "figures", "--out", tmp_path, "--only",
             "004-speed-up"]
    done = subprocess.run(words, capture_output=True, text=True, env={**kept, "HOME": "/proc/none"})
    assert (done.returncode, done.stderr) == (0, "") and (tmp_path / "004-speed-up.png").is_file()


def test_progress_is_for_terminals_only():
    """On a pseudo-terminal validate shows a bar and takes it away; elsewhere stderr stays empty."""
    words = [sys.executable, "-m", "backstay.cli", "plan", "validate", "--jobs", "8", "--json"]
    ours, theirs = pty.openpty()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=theirs, text=True,
                          env={**os.environ, "TERM": "xterm"}) as shown:
        os.close(theirs)
        found = b""
        with contextlib.suppress(OSError):  # EIO: the other end is closed
            while part := os.read(ours, 4096):
                found += part
        os.close(ours)
        assert len(strict(shown.stdout.read())["checks"]) == 24
    assert b"validate" in found and b"100%" in found
    assert subprocess.run(words, capture_output=True, text=True).stderr == ""


def test_a_terminal_that_knows_few_letters_shows_the_rest():
    words = [sys.executable, "-m", "backstay.cli", "plan", "strategy", "--np", "64", "--ng", "1"]
    done = subprocess.run(words, capture_output=True, text=True,
                          env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "") and "64.00 ?" in done.stdout


# Byte order marks
# --------------------------------------------------------------------------------------------------

def test_every_kind_of_file_may_begin_with_a_byte_order_mark(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def file(name, text):
        (tmp_path / name).write_text(BOM + text, encoding="utf-8")
        return tmp_path / name

    machine = file("m.toml",
                   "[mine]\nprocessors = 4e0\nmemory_per_processor_bytes = 2\nstorage_bytes_per_s "
                   "= 1\n")
    found = result("model", "--system", "mine", "--systems", machine)
    assert found["latency_s"] == 4.0 and repr(found["processors"]) == "4"
    prices = file("p.toml", '[mine]\nkind = "local"\ndisk_price = 10\ndisk_bytes = 50e9\n')
    assert result("cost", "--nodes", 2, "--local", "mine", "--prices", prices)["local_cost"] == 20
    assert result("aggregation", "--histogram", file("w.csv", "size_bytes,count\n5000,10\n"),
                  "--processes", 4)["data_bytes"] == 200_000
    assert result("replay", "--trace", file("t.csv", "time,node\n0,a\n500,b\n2000,c\n"), "--cost",
                  3)["failures"] == 3
    trace = '[{"node_id":"a","event_time":0,"event_type":"fault_start"},{"node_id":"b","event_time":1,"event_type":"fault_start"},' \
            '{"node_id":"c","event_time":3,"event_type":"fault_start"}]'  # fmt: skip
    assert result("replay", "--trace", file("t.json", trace), "--cost",
                  3)["format"] == "infinitehbd"
    probe = file("probe.json",
                 '{"memory": {"copy_bytes_per_s": 5e9}, "disk": {"write_bytes_per_s": 1e9}}')
    words = [word for word in ADVISE if word not in ("--copy-bandwidth", "5e9", "--disk-bandwidth",
                                                     "1e9")]
    assert result(*words, "--probe", probe)["machine"]["copy_bytes_per_s"] == 5e9


# Numbers as they are typed and shown
# ---------------------------------------------------------------------------------

@pytest.mark.parametrize("words, key, value", [
    (("survive", "--nodes", "1e5", "--replicas", "2e0", "--failures", "1e2"), "nodes", 100_000),
    (("interval", "--cost", 300, "--node-mtti", "1e9", "--nodes", "1e3"), "mtti_s", 1e6),
    (("model", "--system", "red-storm", "--processors", "6.4e4"), "processors", 64_000),
    (("strategy", "--np", "1e6", "--ng", "1e4"), "processes", 1_000_000),
    (("cost", "--nodes", "1e4"), "nodes", 10_000),
])  # fmt: skip
def test_whole_numbers_may_be_written_with_an_exponent(words, key, value):
    found = result(*words)
    assert found[key] == value and repr(found[key]) == repr(value)


@pytest.mark.parametrize("text", ["1.5", "1e-3", "nan", "inf", "1e400", "x", "", "1,000"])
def test_what_is_no_whole_number_is_refused(text):
    code, out, err = run("survive", "--nodes", text, "--replicas", 2)
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert f"'--nodes': must be a whole number such as 64 or 1e5, not {text!r}" in err


def test_words_follow_their_number():
    assert (counted(1, "node"), counted(0, "node"), counted(2048, "node")) == ("1 node", "0 nodes",
        "2 048 nodes")
    assert (plural(1, "is", "are"), plural(2, "is", "are")) == ("is", "are")
    assert (sentence("an end"), sentence("It is."), sentence("")) == ("An end.", "It is.", "")


ONES = [
    "survive --nodes 8 --replicas 1 --failures 1 --monte-carlo 1",
    "survive --nodes 8 --partners 1", "survive --nodes 8 --replicas 1 --domain-size 4",
    "model --system red-storm --processors 1", "cost --nodes 1", "strategy --np 64 --ng 1",
    "aggregation --profile lu.C.64 --processes 1",
    "replay --trace TRACE --cost 1", "cost --nodes 1 --parity 1+1",
]  # fmt: skip


@pytest.mark.parametrize("line", ONES)
def test_one_of_something_is_one(line, tmp_path):
    (tmp_path / "t").write_text("time,node,repaired\n0,a,1\n500,a,800\n600,a,700\n2000,a,2001\n")
    _, out, err = run(*line.replace("TRACE", str(tmp_path / "t")).split())
    text = out + err
    plurals = ("nodes", "replicas", "partners", "failures", "domains", "processors", "writers",
               "times", "columns", "processes", "versions")
    assert text and not [word for word in plurals if f" 1 {word}" in f" {text}"
                         or f" 1 random {word}" in text or f" 1 fixed {word}" in text], text
