"""`backstay export`: the dispatch to Python, and files that numpy reads back."""

import json
import resource
import subprocess

import pytest

from conftest import ROOT

np = pytest.importorskip("numpy")
pytest.importorskip("typer")
if not (ROOT / ".venv/bin/python").exists():
    pytest.skip("the program starts .venv's Python", allow_module_level=True)


def test_export_npy(world):
    world.golden()
    result = world.json("export", "golden", "--region", "rows", "--region", "u", "-o", "out")
    assert [(one["region"], one["rank"]) for one in result["files"]] == [("rows", None), ("u", 0),
        ("u", 1)]
    rows = np.load(world.folder / "out/rows.npy")
    assert (rows == 100.0 * np.arange(6)[:, None] + np.arange(8)).all()
    assert (np.load(world.folder / "out/u.rank-00001.npy") == np.arange(1500) / 4 + 1).all()


def test_export_everything_of_a_rank_raw(world):
    world.golden()
    assert world.run("export", "golden", 12, "--rank", 1, "--format", "raw", "-o",
                     "out").returncode == 0
    out = world.folder / "out"
    assert (np.fromfile(out / "u.rank-00001.raw") == np.arange(1500) / 4 + 1).all()
    assert (out / "log.1").read_bytes() == bytes((k + 1) % 251 for k in range(310))
    assert (out / "only%20on%201%20%E2%9C%93.rank-00001.raw").stat().st_size == 16
    assert not list(out.glob("*.tmp"))


def test_export_uses_the_configured_folder(world):
    world.golden()
    path = world.folder / "c.toml"
    path.write_text(f'[storage]\ndir = "{world.dir}"\n')
    done = world.run("export", "golden", "--config", path, "--region", "u",
                     env={"BACKSTAY_DIR": str(world.dir)})
    assert done.returncode == 0 and (world.folder / "u.rank-00000.npy").exists()
    path.write_text("[storage]\nkepe = 2\n")
    done = world.run("export", "golden", "--config", path)
    assert done.returncode == 2 and "storage.keep" in done.stderr


def test_files_that_exist_are_replaced_only_on_request(world):
    world.golden()
    first, refused, forced = (world.run("export", "golden", "--region", "u", "-o", "out", *more)
                              for more in ([], [], ["--force"]))
    assert (first.returncode, refused.returncode, forced.returncode) == (0, 1, 0), refused.stderr
    assert "out/u.rank-00000.npy exists already; --force replaces it" in refused.stderr and "Traceback" not in refused.stderr


@pytest.mark.parametrize("words, code", [
    (["golden", 13], 3), (["nobody"], 3), (["golden", "--region", "nope"], 3),
    (["golden", "--rank", 2], 3),
    (["../x"], 2), ([], 2), (["golden", "x"], 2)])
def test_exit_codes(world, words, code):
    world.golden()
    done = world.run("export", *words)
    assert done.returncode == code and done.stderr and "Traceback" not in done.stderr


def test_a_folder_that_cannot_be_made(world):
    world.golden()
    (world.folder / "file").write_text("")
    for folder in ("/proc/nowhere", "file/below"):
        done = world.run("export", "golden", "-o", folder)
        assert done.returncode == 1 and f"the folder {folder} cannot be made" in done.stderr and "Errno" not in done.stderr


@pytest.mark.parametrize("words, code",
                         [(["golden", 13], "not_found"), (["golden", "-o", "/proc/nowhere"], "io")])
def test_an_error_is_json_too(world, words, code):
    world.golden()
    done = world.run("export", *words, "--json")
    assert json.loads(done.stdout)["error"]["code"] == code


def test_a_disk_that_fills_up_in_the_middle_of_a_file_is_named(world):
    """Played by a limit of file sizes: the header of .npy fits below it, the data does not."""
    world.golden()
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
    done = world.run("export", "golden", "--region", "u", "-o", "out", preexec_fn=limit)
    assert done.returncode == 1 and "cannot be written: File too large; raise the limit of file sizes" in done.stderr
    assert not list((world.folder / "out").iterdir())


def test_damage_is_never_exported(world):
    folder = world.golden()
    with open(folder / "node-0000000.segment", "r+b") as file:
        file.seek(5000)
        byte = file.read(1)[0]
        file.seek(5000)
        file.write(bytes([byte ^ 1]))
    done = world.run("export", "golden", "-o", "out")
    assert done.returncode == 4 and "Traceback" not in done.stderr


def test_what_a_file_says_does_not_speak_to_the_terminal(world):
    folder = world.golden()
    (folder / "damaged").write_text("\x1b[31mred\x07\n")
    for version in ((), (12,)):
        done = world.run("export", "golden", *version, "-o", "out")
        assert done.returncode != 0 and "\\x1b[31mred\\x07" in done.stderr
        assert "\x1b" not in done.stderr and "UserWarning" not in done.stderr and ".py" not in done.stderr


ODD = """
import numpy, backstay
from backstay import session
with backstay.init():
    session._check(session._c.protect("odd", 0, 11, [2**40, 2**40, 0], [], []))
    backstay.protect("u", numpy.arange(5.0))
    backstay.wait(backstay.checkpoint())
"""


def test_a_region_that_numpy_cannot_hold_is_left_out_alone(world):
    python = ROOT / ".venv/bin/python"
    env = {**world.env, "BACKSTAY_JOB": "odd", "BACKSTAY_AGENT_IDLE_EXIT_S": "2"}
    if subprocess.run([python, "-c", "import backstay.session"], env=env,
                      capture_output=True).returncode != 0:
        pytest.skip("the compiled part of the Python package was not built")
    subprocess.run([python, "-c", ODD], env=env, check=True, timeout=60)
    result = world.json("export", "odd", "-o", "out", code=1)
    assert [one["region"] for one in result["files"]] == ["u"] and (world.folder
        / "out/u.npy").exists()
    assert result["left_out"][0]["region"] == "odd" and "cannot be held" in result["left_out"][0][
        "why"]
    done = world.run("export", "odd", "--region", "odd", "-o", "out")
    assert done.returncode == 1 and "left out: region 'odd'" in done.stderr and "Traceback" not in done.stderr
