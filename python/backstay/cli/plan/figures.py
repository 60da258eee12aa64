"""`backstay plan figures`: the papers' figures, drawn from the models."""

import pathlib
from typing import Annotated, Optional

import typer

from ...plan import files
from ...plan.check import PlanError
from ...plan.creates import read
from ...plan.tables import nearest
from ..pictures import needs
from ..usage import shown
from . import output
from .output import AsJson

EPILOG = (
    "\b\nExamples:\n"
    "  backstay plan figures --out figures\n"
    "  backstay plan figures --out figures --only 002-table-2-survival --json\n"
    "  backstay plan figures --out figures --creates creates-1.json --creates creates-8.json\n"
    "  backstay plan figures --out figures --strategies strategies.json\n\n"
    f"{output.EXIT_CODES}"
)


def command(
    folder: Annotated[pathlib.Path,
                      typer.Option("--out", metavar="DIR", help="Folder; made if missing")],
    only: Annotated[Optional[list[str]],
                    typer.Option("--only", metavar="NAME", help="One; may be repeated")] = None,
    creates: Annotated[
        Optional[list[pathlib.Path]],
        typer.Option("--creates", metavar="FILE",
                     help="What `bench/creates --json` printed: Figs. 3.1, 4.2; may be repeated")
    ] = None,
    strategies: Annotated[
        Optional[list[pathlib.Path]],
        typer.Option("--strategies", metavar="FILE",
                     help="What `bench/io_strategies --out` wrote: paper 004, Figs. 5 to 8; may be "
                          "repeated")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw the papers' figures from the models.

    Paper 000, Figs. 3.2 to 3.4 and 4.3 to 4.6, and 3.1 and 4.2 from measurements; paper 001, Table
    I; paper 002, Table 2 and losses against replicas; paper 004, production improvement and
    speed-up, and Figs. 5 to 8 from measurements. Each as PNG and SVG.
    """
    with needs("matplotlib", "backstay plan figures"):
        from ...plan import figures
    given = {"creates": [read(path) for path in creates or ()],
             "strategies": figures.strategies.read(strategies or ())}
    known = [*figures.FIGURES, *(name for option, of in figures.MEASURED.items() if given[option]
                                 for name in of)]
    for name in only or ():
        for option, of in figures.MEASURED.items():
            if name in of and not given[option]:
                raise PlanError("only", f"{name} is drawn from measurements: give --{option}")
        if name not in known:
            raise PlanError("only", f"{name} is not known{nearest(name, known)}")
    files.make_folder(folder)
    made = [file for name in shown(list(only or known), "figures") for file
            in figures.draw(name, folder, **given)]
    result = {"files": [str(file) for file in made]}
    output.show(result, [(str(file), "") for file in made], as_json)
