"""Measured creates in the planner: α_c and paper 000's Figs. 3.1 and 4.2."""

import json

import pytest
from backstay.plan import creates
from runner import result, run

MEASURED = {"benchmark": "creates", "processes": 4, "files_per_s": 20_000.0,
            "files_synced_per_s": 5_000.0, "streams_per_s": 400_000.0,
            "streams_synced_per_s": 100_000.0, "mib": 64,
            "own_file_bytes_synced_per_s": 4e8, "stream_bytes_synced_per_s": 9e8,
            "disk_bytes_per_s": 1e9}  # fmt: skip


def write(folder, **changed):
    path = folder / f"creates-{len(list(folder.iterdir()))}.json"
    path.write_text(json.dumps({**MEASURED, **changed}))
    return path


def test_the_startup_is_that_of_as_many_files_or_objects(tmp_path):
    measured = creates.read(write(tmp_path))
    assert creates.startup_s([1, 40_000], measured, "pfs") == pytest.approx([5e-5, 2.0])
    assert creates.startup_s(40_000, measured, "lwfs") == pytest.approx(0.1)


@pytest.mark.parametrize("method, startup_s", [("pfs", 0.4096), ("lwfs", 0.02048),
                                               ("overlay", 0.02048)])  # fmt: skip
def test_the_model_takes_it(tmp_path, method, startup_s):
    words = ("model", "--system", "red-storm", "--processors", 8192, "--method", method)
    found = result(*words, "--creates", write(tmp_path))
    assert found["startup_s"] == pytest.approx(startup_s)
    bare = result(*words, "--startup", 0)
    assert found["latency_s"] == pytest.approx(bare["latency_s"] + startup_s)
    _, out, _ = run(*words, "--creates", write(tmp_path))
    assert "creating files or objects" in out


def test_fig_4_2_shows_what_was_measured(tmp_path):
    pytest.importorskip("matplotlib")
    from backstay.plan import figures

    read = [creates.read(write(tmp_path, processes=8, files_per_s=30_000.0)),
            creates.read(write(tmp_path))]  # fmt: skip
    axes = figures.measured.creates(read).axes[0]
    files, objects, _, synced = axes.lines
    assert files.get_xydata().tolist() == [[4, 20_000], [8, 30_000]]
    assert objects.get_xydata().tolist() == [[4, 400_000], [8, 400_000]]
    assert synced.get_ydata().tolist() == [100_000, 100_000]
    given = [word for _ in read for word in ("--creates", write(tmp_path))]
    made = result("figures", "--out", tmp_path / "new", "--only", "000-fig-4.2-creates", *given)
    assert [name.rsplit("/", 1)[1] for name in made["files"]] == ["000-fig-4.2-creates.png",
                                                                  "000-fig-4.2-creates.svg"]


def test_fig_3_1_shows_the_model_beside_what_was_measured(tmp_path):
    pytest.importorskip("matplotlib")
    from backstay.plan import figures

    read = [creates.read(write(tmp_path, processes=8)), creates.read(write(tmp_path))]
    modelled, files, objects = figures.measured.throughput(read).axes[0].lines
    data = 4 * 64 * 2**20
    expected = data / (4 / 20_000 + data / 1e9)  # eq. 3.3: creating, then the disk
    assert modelled.get_xydata()[0].tolist() == pytest.approx([4, expected])
    assert files.get_xydata().tolist() == [[4, 4e8], [8, 4e8]]
    assert objects.get_ydata().tolist() == [9e8, 9e8]
    made = result("figures", "--out", tmp_path / "new", "--only", "000-fig-3.1-file-per-process",
                  "--creates", write(tmp_path))
    assert len(made["files"]) == 2


@pytest.mark.parametrize("changed", [{"benchmark": "files"}, {"files_per_s": 0},
                                     {"streams_per_s": None}, {"processes": True}])  # fmt: skip
def test_another_file_is_refused(tmp_path, changed):
    code, _, err = run("model", "--system", "red-storm", "--creates", write(tmp_path, **changed))
    assert code == 2 and "not what `bench/creates --json` prints" in err


def test_what_does_not_go_together(tmp_path):
    code, _, err = run("model", "--system", "red-storm", "--startup", 1, "--creates",
                       write(tmp_path))
    assert code == 2 and "--startup or --creates may be given" in err
    pytest.importorskip("matplotlib")
    code, _, err = run("figures", "--out", tmp_path, "--only", "000-fig-4.2-creates")
    assert code == 2 and "give --creates" in err
