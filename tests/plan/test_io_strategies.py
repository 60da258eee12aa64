"""Paper 004's Figs. 5 to 8 show what bench/io_strategies wrote, and its equations beside that."""

import json

import pytest
from runner import result, run

NAMES = ("file per process", "collective, one file", "collective, np/4 files",
         "writers 8:1, one file", "writers 8:1, a file each", "agent")


def measured(ranks=16, mib=64):
    """Each curve is blocked 0.1 s more than the one before, and is safe after 1 s."""
    curves = {name: {"raw_write_s": 0.5, "blocked_s": 0.1 + 0.1 * number, "safe_s": 1.0,
                     "workers_s": 0.3, "send_s": 0.2} for number, name in enumerate(NAMES)}
    return {"ranks": ranks, "mib": mib, "curves": curves}


def write(folder, *results):
    path = folder / f"strategies-{len(list(folder.iterdir()))}.json"
    path.write_text(json.dumps({"results": results}))
    return path


def drawn(paths, name):
    strategies = pytest.importorskip("backstay.plan.figures.strategies", exc_type=ImportError)
    return strategies.FIGURES[name](strategies.read(paths)).axes[0]


def test_sweeps_and_files_become_one_point_of_each_number_of_ranks(tmp_path):
    paths = [write(tmp_path, measured(4, 64), measured(64, 32), measured(64, 256)),
             write(tmp_path, measured(4, 64), measured(4, 64))]
    *lines, raw = drawn(paths, "004-fig-5-bandwidth").lines
    assert [one.get_label() for one in lines] == [one.replace(" 8:1", "") for one in NAMES]
    assert lines[0].get_xydata().tolist() == [[4, 64 * 2**20], [64, 256 * 2**20]]
    assert raw.get_ydata().tolist() == [128 * 2**20, 512 * 2**20]


def test_times_ratios_and_speedups_stand_beside_the_equations(tmp_path):
    paths = [write(tmp_path, measured())]
    workers, predicted = drawn(paths, "004-fig-6-time").lines[2:]
    assert workers.get_ydata() == [0.3] and predicted.get_ydata() == [0.2]
    ratios = drawn(paths, "004-fig-7-ratio").lines[0].get_xydata()
    assert ratios[0].tolist() == pytest.approx([0.05, (0.1 + 0.9 - 0.05) / 0.05])  # λ
    assert ratios[-1].tolist() == pytest.approx([50, 0.1 / 50])
    found = [line.get_ydata()[0] for line in drawn(paths, "004-speed-up-measured").lines]
    own = 3.2 / (14 * 0.3 + 2), 3.2 / (14 * 0.2 + 2), 0.2 / (0.1 + 2 / 16 * 0.9), 1.6
    assert found == pytest.approx([*own, 3.2 / (14 * 0.3 + 2), 3.2 / (14 * 1.2 + 2)])
    points = [one.get_offsets().tolist() for one in drawn(paths, "004-fig-8-files").collections]
    assert [[at for at, _ in one] for one in points] == [[16], [1, 4], [1]]


def test_the_command_draws_them_and_says_what_is_wrong(tmp_path):
    pytest.importorskip("matplotlib")
    words = ("figures", "--out", tmp_path / "new", "--only", "004-fig-6-time")
    assert len(result(*words, "--strategies", write(tmp_path, measured()))["files"]) == 2
    assert "give --strategies" in run(*words)[2]
    for other in (write(tmp_path), write(tmp_path, measured(0)), write(tmp_path, [])):
        code, _, err = run(*words, "--strategies", other)
        assert code == 2 and "not what `bench/io_strategies --out` writes" in err
