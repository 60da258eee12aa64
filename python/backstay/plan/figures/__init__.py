"""`backstay plan figures`: the papers' figures, drawn from the models. docs/plan/figures.md.

One module a paper; each has FIGURES: name of the file -> function () that returns a matplotlib
Figure. This folder needs matplotlib; the models that it draws do not.
"""

import pathlib

import matplotlib

from .. import files
from . import measured, paper_000, paper_001, paper_002, paper_004, strategies
from .style import RULES

FIGURES = {**paper_000.FIGURES, **paper_001.FIGURES, **paper_002.FIGURES, **paper_004.FIGURES}
# Option with what was measured -> the figures that are drawn where it is given.
MEASURED = {"creates": measured.FIGURES, "strategies": strategies.FIGURES}
FORMATS = ("png", "svg")


def save(figure, path: pathlib.Path) -> None:
    """Writes a figure, whole or not at all; its ending says the form. The same figure gives the
    same bytes.
    """
    form = path.suffix[1:]
    with matplotlib.rc_context({**RULES, "svg.hashsalt": path.stem}), files.whole(path) as begun:
        figure.savefig(begun, format=form,
                       metadata={"Date": None} if form == "svg" else {"Software": None})


def draw(name: str, folder: pathlib.Path, formats=FORMATS, **given) -> list[pathlib.Path]:
    """Draws one figure into `folder`, which must exist; returns the files. `given`: what the
    figures of MEASURED show, by its option.
    """
    with matplotlib.rc_context(RULES):
        found = [of[name](given[option]) for option, of in MEASURED.items() if name in of]
        figure = found[0] if found else FIGURES[name]()
    made = [folder / f"{name}.{form}" for form in formats]
    for path in made:
        save(figure, path)
    return made
