"""`backstay export`: the dispatch to Python, and files that numpy reads back."""

import pytest

from conftest import ROOT

np = pytest.importorskip("numpy")
pytest.importorskip("typer")
if not (ROOT / ".venv/bin/python").exists():
    pytest.skip("the program starts .venv's Python", allow_module_level=True)


def test_export_npy(world):
    world.golden()
    result = world.json("export", "golden", "--region", "rows", "--region", "u", "-o", "out")
    assert [(one["region"], one["rank"]) for one in result["files"]] == [("rows", None), ("u", 0), ("u", 1)]
    rows = np.load(world.folder / "out/rows.npy")
    assert (rows == 100.0 * np.arange(6)[:, None] + np.arange(8)).all()
    assert (np.load(world.folder / "out/u.rank-00001.npy") == np.arange(1500) / 4 + 1).all()


def test_export_everything_of_a_rank_raw(world):
    world.golden()
    assert world.run("export", "golden", 12, "--rank", 1, "--format", "raw", "-o", "out").returncode == 0
    out = world.folder / "out"
    assert (np.fromfile(out / "u.rank-00001.raw") == np.arange(1500) / 4 + 1).all()
    assert (out / "log.1").read_bytes() == bytes((k + 1) % 251 for k in range(310))
    assert (out / "only%20on%201%20%E2%9C%93.rank-00001.raw").stat().st_size == 16
    assert not list(out.glob("*.tmp"))


def test_export_uses_the_configured_folder(world):
    world.golden()
    path = world.folder / "c.toml"
    path.write_text(f'[storage]\ndir = "{world.dir}"\n')
    done = world.run("export", "golden", "--config", path, "--region", "u", env={"BACKSTAY_DIR": str(world.dir)})
    assert done.returncode == 0 and (world.folder / "u.rank-00000.npy").exists()
    path.write_text("[storage]\nkepe = 2\n")
    done = world.run("export", "golden", "--config", path)
    assert done.returncode == 2 and "storage.keep" in done.stderr


@pytest.mark.parametrize("words, code", [
    (["golden", 13], 3), (["nobody"], 3), (["golden", "--region", "nope"], 3), (["golden", "--rank", 2], 3),
    (["../x"], 2), ([], 2), (["golden", "x"], 2)])
def test_exit_codes(world, words, code):
    world.golden()
    done = world.run("export", *words)
    assert done.returncode == code and done.stderr and "Traceback" not in done.stderr


def test_damage_is_never_exported(world):
    folder = world.golden()
    with open(folder / "node-0000000.segment", "r+b") as file:
        file.seek(5000)
        byte = file.read(1)[0]
        file.seek(5000)
        file.write(bytes([byte ^ 1]))
    done = world.run("export", "golden", "-o", "out")
    assert done.returncode == 4 and "Traceback" not in done.stderr
