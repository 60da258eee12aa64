"""`backstay plan explore`: the planner as an interactive page."""

import pathlib
from typing import Annotated

import typer

from ..pictures import needs, write_page
from . import output
from .output import AsJson

EPILOG = (
    "\b\nExamples:\n"
    "  backstay plan explore -o explore.html\n"
    "  backstay plan explore --json\n\n"
    f"{output.EXIT_CODES}"
)


def command(
    file: Annotated[pathlib.Path,
                    typer.Option("-o", "--output", metavar="FILE", help="The page")] = pathlib.Path(
        "explore.html"
    ),
    as_json: AsJson = False,
) -> None:
    """Write a page with sliders: interval, efficiency, safety.

    Nodes, memory, failures, bandwidths, replicas or parity; intervals of each level, efficiency and
    survival follow as they move. One file that opens in any browser, offline.
    """
    with needs("plotly", "backstay plan explore"):
        from ...plan.explore import page
    write_page(file, page.render())
    output.show({"file": str(file)}, [(str(file), "")], as_json)
