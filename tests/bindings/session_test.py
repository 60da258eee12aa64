"""The Python package with a real agent. Run by pytest inside run_in_sandbox.py."""

import multiprocessing
import os
import pathlib
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import backstay

DTYPES = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"]


@pytest.fixture
def job(monkeypatch, request):
    """A job of the test's own."""
    monkeypatch.setenv("BACKSTAY_JOB", re.sub(r"[^A-Za-z0-9_-]", "-", request.node.name))


@pytest.mark.parametrize("script, words, name", [
    ("heat.py", [], "heat"), ("my heat.v2.py", [], "my_heat.v2"),
    ("pack/__main__.py", ["-m"], "pack")])
def test_a_job_without_a_name_is_named_after_the_script(tmp_path, script, words, name):
    path = tmp_path / script
    path.parent.mkdir(exist_ok=True)
    path.write_text("import backstay\nwith backstay.init():\n    print(backstay.route_file('x'))\n")
    env = {key: value for key,
           value in os.environ.items() if key not in ("BACKSTAY_JOB", "BACKSTAY_JOB_NAME")}
    command = [sys.executable, *(["-m", "pack"] if words else [script])]
    said = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True,
                          timeout=60)
    assert said.returncode == 0, said.stderr
    assert pathlib.Path(said.stdout.strip()).parent.parent.name == name


def test_nothing_saved_yet(job):
    with backstay.init():
        backstay.protect("u", np.zeros(3))
        assert backstay.restart() is None
        assert backstay.version() == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_comes_back(job, dtype):
    saved = (np.arange(24) % 2).astype(dtype).reshape(2, 3, 4)
    with backstay.init():
        u = saved.copy()
        backstay.protect("u", u)
        version = backstay.checkpoint()
        assert backstay.version() == version
    with backstay.init():
        u = np.zeros_like(saved)
        backstay.protect("u", u)
        assert backstay.restart() == version
        np.testing.assert_array_equal(u, saved)


def test_scalar_empty_and_place(job):
    step, none, block = np.array(7), np.empty(0), np.ones((2, 5))
    with backstay.init():
        backstay.protect("step", step)
        backstay.protect("none", none)
        backstay.protect("block", block, global_shape=(4, 5), global_offset=(2, 0))
        backstay.checkpoint()
        step[...] = 0
        assert backstay.restart() is not None
        assert step == 7


def test_old_version_and_levels(job):
    u = np.full(1000, 1.0)
    with backstay.init():
        backstay.protect("u", u)
        first = backstay.checkpoint()
        u[:] = 2
        second = backstay.checkpoint()
        assert second > first
        np.testing.assert_array_equal(backstay.read_region(first, "u", np.empty(1000)),
                                      np.full(1000, 1.0))
        backstay.wait(second, backstay.Level.LOCAL, timeout_s=60)
        assert backstay.test(second) >= backstay.Level.LOCAL
        with pytest.raises(backstay.NotFound):
            backstay.test(second + 100)
        with pytest.raises(backstay.RegionMismatch):
            backstay.read_region(first, "u", np.empty(999))


def test_routed_file(job):
    with backstay.init():
        path = backstay.route_file("data.txt")
        with open(path, "w") as out:
            out.write("as it was")
        backstay.checkpoint()
        os.unlink(path)
        backstay.restart()
        with open(path) as back:
            assert back.read() == "as it was"


def test_due_every_second_call(job):
    with backstay.init():
        assert [backstay.due() for _ in range(4)] == [False, True, False, True]
        assert not backstay.stop_requested()


def test_protected_array_stays_alive(job):
    with backstay.init():
        backstay.protect("u", np.arange(100000.0))  # no other reference holds it
        version = backstay.checkpoint()
        np.testing.assert_array_equal(backstay.read_region(version, "u", np.empty(100000)),
                                      np.arange(100000.0))


def test_errors_have_classes_and_advice(job):
    u = np.zeros(3)
    with pytest.raises(backstay.WrongState):
        backstay.checkpoint()
    with backstay.init():
        with pytest.raises(backstay.WrongState):
            backstay.init()
        backstay.protect("u", u)
        with pytest.raises(backstay.DuplicateName) as refused:
            backstay.protect("u", u)
        assert refused.value.code == 9 and "u" in str(refused.value)
        with pytest.raises(backstay.NotFound):
            backstay.unprotect("v")
        with pytest.raises(backstay.InvalidArgument):
            backstay.protect("outside", u, global_shape=(3,), global_offset=(1,))
        with pytest.raises(ValueError,
                           match="half: global_shape and global_offset need 1 numbers each"):
            backstay.protect("half", u, global_offset=(1,))
    assert issubclass(backstay.WrongState, backstay.Error)


def test_wrong_shape_is_refused_and_untouched(job):
    with backstay.init():
        backstay.protect("u", np.ones(4))
        backstay.checkpoint()
    with backstay.init():
        u = np.zeros(5)
        backstay.protect("u", u)
        with pytest.raises(backstay.RegionMismatch):
            backstay.restart()
        assert not u.any()


@pytest.mark.parametrize("bad",
                         [np.zeros((4, 4))[:, ::2], np.array(["text"]), [1.0, 2.0],
                          np.zeros(2, ">f8")])
def test_arrays_that_cannot_be_saved(job, bad):
    with backstay.init(), pytest.raises(TypeError):
        backstay.protect("bad", bad)


class Masked(np.ndarray):
    """As that of astropy: no numpy.ma, and it has a mask beside its data."""
    mask = property(lambda self: self._mask)


@pytest.mark.parametrize("bad", [np.ma.array(np.zeros(2), mask=[0, 1]), np.ma.zeros(2),
                                 np.zeros(2).view(Masked)])
def test_arrays_with_a_mask_are_refused(job, bad):
    says = f"the mask of a {type(bad).__name__} would be lost"
    with backstay.init():
        with pytest.raises(TypeError, match=f"bad: {says}"):
            backstay.protect("bad", bad)
        with backstay.open_stream("s") as stream, pytest.raises(TypeError, match=f"data: {says}"):
            stream.write(bad)
        backstay.protect("data", np.asarray(bad))
        backstay.checkpoint()


def test_arrays_of_other_kinds_come_back(job, tmp_path):
    """What they have beside their data is of the program, and does not change."""
    def kinds():
        return {"matrix": np.matrix(np.zeros((2, 2))), "view": np.zeros(4).view(np.recarray),
                "map": np.memmap(tmp_path / "map", dtype="f8", mode="w+", shape=4)}

    for first in (True, False):
        arrays = kinds()
        with backstay.init():
            for name, array in arrays.items():
                backstay.protect(name, array)
            if first:
                for array in arrays.values():
                    array[:] = 7
                backstay.checkpoint()
            else:
                backstay.restart()
                assert all((array == 7).all() for array in arrays.values())


@pytest.mark.parametrize("call, says", [
    (lambda: backstay.protect(3, np.zeros(2)), "name of a region: a string is needed, not int"),
    (lambda: backstay.unprotect(None), "name of a region: a string"),
    (lambda: backstay.route_file(b"x"), "name of a file: a string"),
    (lambda: backstay.test("1"), "version: a whole number is needed, not str"),
    (lambda: backstay.wait(1.5), "version: a whole number is needed, not float"),
    (lambda: backstay.read_region(1, "u", [0.0]), "out: a writable, C-contiguous numpy array"),
    (lambda: backstay.wait(1, "local"), "level: a whole number is needed, not str"),
    (lambda: backstay.wait(1, timeout_s="soon"), "timeout_s: a number is needed, not 'soon'"),
    (lambda: backstay.protect("u", np.zeros(2), 4), "global_shape: a sequence of whole numbers"),
    (lambda: backstay.protect("u", np.zeros(2), "4"), "a sequence of whole numbers"),
    (lambda: backstay.protect("u", np.zeros(2), (4.5,)), "global_shape: a whole number is needed"),
    (lambda: backstay.protect("u", np.zeros(2), (4,), "a"), "global_offset: a sequence"),
])
def test_arguments_of_a_wrong_type_are_named(job, call, says):
    with backstay.init(), pytest.raises(TypeError, match=says):
        call()


def test_names_and_arrays_beyond_the_limits(job):
    with backstay.init():
        with pytest.raises(ValueError, match="name of a region: it holds a zero byte"):
            backstay.protect("a\0b", np.zeros(2))
        with pytest.raises(ValueError, match="u: 9 dimensions; at most 8 are saved"):
            backstay.protect("u", np.zeros([1] * 9))


def test_numbers_out_of_range_are_named(job):
    with backstay.init():
        with pytest.raises(ValueError, match="level: 9 is none; take Level.LOCAL"):
            backstay.wait(1, 9)
        for number in (-1, 1 << 64):
            with pytest.raises(ValueError, match=f"u: global_shape: {number} is no number"):
                backstay.protect("u", np.zeros(2), global_shape=(number,))


def test_numbers_that_are_no_versions(job):
    with backstay.init():
        for number in (-1, 1 << 64):
            with pytest.raises(ValueError, match="no version's number"):
                backstay.test(number)


def test_a_communicator_that_is_none_is_named():
    pytest.importorskip("mpi4py.MPI")
    with pytest.raises(TypeError, match="comm: a communicator of mpi4py is needed, not str"):
        backstay.init("world")


def test_configuration_error(job, tmp_path):
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[storage]\nkep = 3\n")
    with pytest.raises(backstay.ConfigError, match="keep"):
        backstay.init(config=wrong)


@pytest.mark.parametrize("variable", ["BACKSTAY_DIR", "BACKSTAY_AGENT_SOCKET"])
@pytest.mark.parametrize("place, kind",
                         [("file", backstay.ConfigError), ("/sys", backstay.NotPermitted)])
def test_a_folder_that_cannot_be_made_is_named(job, monkeypatch, tmp_path, variable, place, kind):
    (tmp_path / "file").touch()
    base = tmp_path / place  # an absolute one stays as it is
    monkeypatch.setenv(variable, str(base / "backstay-test" / "x"))
    key = "storage.dir" if variable == "BACKSTAY_DIR" else "agent.socket"
    with pytest.raises(kind, match=rf"create the folder {re.escape(str(base))}.*: set {key}"):
        backstay.init()


def test_the_version_of_this_session_is_open_to_the_reader(job):
    """What the compiled part writes, the reader in pure Python reads."""
    saved = np.arange(12.0).reshape(3, 4)
    with backstay.init():
        backstay.protect("u", saved, global_shape=(3, 4))
        version = backstay.checkpoint()
        backstay.wait(version)
    folder = os.path.join(os.environ["BACKSTAY_DIR"], os.environ["BACKSTAY_JOB"],
                          f"v{version:016d}")
    np.testing.assert_array_equal(backstay.open(folder)["u"], saved)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_ends_a_forked_child(job, number):
    with backstay.init():
        child = multiprocessing.get_context("fork").Process(target=signal.pause)
        child.start()
        os.kill(child.pid, number)
        child.join(20)
        child.kill()
        assert child.exitcode == -number
