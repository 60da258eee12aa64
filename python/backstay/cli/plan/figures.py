"""`backstay plan figures`: the papers' figures, drawn from the models."""

import pathlib
from typing import Annotated, Optional

import typer

from ...plan import files
from ...plan.check import PlanError
from ...plan.tables import nearest
from ..pictures import needs
from ..usage import shown
from . import output
from .output import AsJson

EPILOG = (
    "\b\nExamples:\n"
    "  backstay plan figures --out figures\n"
    "  backstay plan figures --out figures --only 002-table-2-survival --json\n\n"
    f"{output.EXIT_CODES}"
)


def command(
    folder: Annotated[pathlib.Path,
                      typer.Option("--out", metavar="DIR", help="Folder; made if missing")],
    only: Annotated[Optional[list[str]],
                    typer.Option("--only", metavar="NAME", help="One; may be repeated")] = None,
    as_json: AsJson = False,
) -> None:
    """Draw the papers' figures from the models.

    Paper 000, Figs. 3.2 to 3.4 and 4.3 to 4.6; paper 001, Table I; paper 002, Table 2 and losses
    against replicas; paper 004, production improvement and speed-up. Each as PNG and SVG.
    """
    with needs("matplotlib", "backstay plan figures"):
        from ...plan import figures
    for name in only or ():
        if name not in figures.FIGURES:
            raise PlanError("only", f"{name} is not known{nearest(name, figures.FIGURES)}")
    files.make_folder(folder)
    made = [file for name in shown(list(only or figures.FIGURES), "figures") for file
            in figures.draw(name, folder)]
    result = {"files": [str(file) for file in made]}
    output.show(result, [(str(file), "") for file in made], as_json)
