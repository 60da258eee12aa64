"""`backstay plan figures`: the papers' figures, drawn from the models. docs/plan/figures.md.

One module a paper; each has FIGURES: name of the file -> function () that returns a matplotlib
Figure. This folder needs matplotlib; the models that it draws do not.
"""

import pathlib

import matplotlib

from .. import files
from . import measured, paper_000, paper_001, paper_002, paper_004
from .style import RULES

FIGURES = {**paper_000.FIGURES, **paper_001.FIGURES, **paper_002.FIGURES, **paper_004.FIGURES}
MEASURED = measured.FIGURES  # drawn where a measurement is given
FORMATS = ("png", "svg")


def save(figure, path: pathlib.Path) -> None:
    """Writes a figure, whole or not at all; its ending says the form. The same figure gives the
    same bytes.
    """
    form = path.suffix[1:]
    with matplotlib.rc_context({**RULES, "svg.hashsalt": path.stem}), files.whole(path) as begun:
        figure.savefig(begun, format=form,
                       metadata={"Date": None} if form == "svg" else {"Software": None})


def draw(name: str, folder: pathlib.Path, formats=FORMATS, creates=()) -> list[pathlib.Path]:
    """Draws one figure into `folder`, which must exist; returns the files. `creates`: what the
    figures of MEASURED show.
    """
    with matplotlib.rc_context(RULES):
        figure = MEASURED[name](creates) if name in MEASURED else FIGURES[name]()
    made = [folder / f"{name}.{form}" for form in formats]
    for path in made:
        save(figure, path)
    return made
