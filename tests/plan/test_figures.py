"""`backstay plan figures`: every figure of the list is drawn, labelled, and shows what the models
say.
"""

import builtins
import pathlib
import re
from unittest import mock
from xml.etree import ElementTree

import pytest

pytest.importorskip("matplotlib")
import matplotlib.image
from backstay.plan import figures, survival
from backstay.plan.figures import style
from matplotlib.colors import to_rgb
from runner import result, run

WANTED = {"000-fig-3.2", "000-fig-3.3", "000-fig-3.4", "000-fig-4.3", "000-fig-4.4", "000-fig-4.5",
          "000-fig-4.6",
          "001-table-1", "002-table-2", "002-losses", "004-production", "004-speed-up"}  # fmt: skip
UNIT = re.compile(r"\(%|log scale|λ|processors|nodes|replicas|sooner|chance|steps")


def test_every_figure_becomes_a_png_and_an_svg(tmp_path):
    made = [pathlib.Path(file) for file in result("figures", "--out",
                                                  tmp_path / "new" / "folder")["files"]]
    for start in WANTED:
        assert sorted(file.suffix for file in made if file.name.startswith(start)) == [".png",
            ".svg"], start
    assert len(made) == 2 * len(WANTED)
    for file in made:
        if file.suffix == ".svg":
            assert ElementTree.parse(file).getroot().tag.endswith("svg")
        else:
            pixels = matplotlib.image.imread(file)
            assert min(pixels.shape[:2]) >= 700 and pixels[..., :3].std() > 0.05


@pytest.mark.parametrize("name", figures.FIGURES)
def test_axes_say_what_they_show(name):
    axes = figures.FIGURES[name]().axes
    for one in axes[:1]:
        assert one.get_title(loc="left") and UNIT.search(one.get_xlabel())
        assert UNIT.search(one.get_ylabel()) or name.startswith("001")  # names of machines need no label
    assert axes[0].get_legend() or name == "002-table-2-survival"


def test_known_values_are_in_the_pictures():
    storm, _, jaguar, _ = figures.FIGURES["000-fig-3.4-overhead"]().axes[0].lines
    assert dict(storm.get_xydata())[65536] == pytest.approx(32.4, abs=0.05)
    assert dict(jaguar.get_xydata())[131072] == pytest.approx(70.8, abs=0.05)
    bars = figures.FIGURES["001-table-1-fill-time"]().axes[0].patches
    assert bars[0].get_width() == pytest.approx(410)  # Stampede, s
    texts = [text.get_text() for text in figures.FIGURES["002-table-2-survival"]().axes[0].texts]
    assert str(survival.allowed_failures(2048, 4, 0.999)) in texts and sum(text.isdigit() for text
        in texts) == 108


def test_numbers_in_the_cells_can_be_read():
    axes = figures.FIGURES["002-table-2-survival"]().axes[0]
    image = axes.collections[0]
    cells = [text for text in axes.texts if text.get_text().isdigit()]
    values = image.get_array().reshape(9, 12)
    for text in cells:
        column, row = (int(place) for place in text.get_position())
        behind = image.to_rgba(values[row, column])
        assert style.contrast(to_rgb(text.get_color()), behind) >= 4.5, text
    assert {text.get_color() for text in cells} == {"white", "black"}
    assert style.contrast((0, 0, 0),
                          (1, 1, 1)) == pytest.approx(21) and style.contrast(to_rgb("#767676"),
                              (1, 1, 1)) == pytest.approx(4.54, abs=0.01)


def test_bad_input(tmp_path):
    code, _, err = run("figures", "--out", tmp_path, "--only", "000-fig-3.7")
    assert code == 2 and "--only 000-fig-3.7 is not known" in err and not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    code, _, err = run("figures", "--out", tmp_path / "file", "--only", "004-speed-up")
    assert code == 1 and "file: cannot be written: it is not a folder; choose" in err


def test_without_matplotlib_it_says_how_to_install_it(tmp_path):
    real = builtins.__import__

    def without(name, *more):
        if "figures" in name or (more[2:3] and more[2] and "figures" in more[2]
                                 and more[3:] == (3,)):
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
        return real(name, *more)

    with mock.patch.object(builtins, "__import__", without):
        code, _, err = run("figures", "--out", tmp_path)
    assert code == 1 and "matplotlib is missing; run `pip install matplotlib`" in err and "Traceback" not in err
