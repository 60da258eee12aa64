"""`backstay plan validate`: the closed models beside their simulation."""

from typing import Annotated

import typer

from ...plan.simulate import estimate
from ..usage import shown
from . import output
from .output import AsJson, number

EPILOG = (
    "\b\nExamples:\n"
    "  backstay plan validate --jobs 500\n"
    "  backstay plan validate --jobs 200 --seed 7 --json\n\n"
    "Exit codes: 0 all agree, 1 a model lies outside its interval, 2 wrong usage."
)


def command(
    jobs: Annotated[int,
                    typer.Option("--jobs", parser=output.whole_number, metavar="N",
                                 help="Jobs played through for each comparison")] = 2000,
    seed: Annotated[int,
                    typer.Option("--seed", parser=output.whole_number, metavar="S",
                                 help="The same seed gives the same table")] = 1,
    as_json: AsJson = False,
) -> None:
    """Hold every model against a simulation.

    Jobs, checkpoints and losses are played through event by event; each line shows the formula, the
    simulated mean and the interval that holds the true one with 99.9 %.
    """
    from ...plan.simulate import validate

    found = [check for part in shown(validate.parts(jobs, seed), "validate") for check in part()]
    rows = [
        {"name": one.name, "unit": one.unit, "formula": float(one.formula),
         "tolerance": one.tolerance,
         "simulated": one.simulated._asdict(), "agrees": one.agrees}
        for one in found
    ]  # fmt: skip
    good = sum(one.agrees for one in found)
    result = {"checks": rows, "agree": good, "confidence": estimate.CONFIDENCE, "jobs": jobs,
              "seed": seed}
    lines = [(one.name, text(one)) for one in found] + [("agree", f"{good} of {len(found)}")]
    output.show(result, lines, as_json)
    if good < len(found):
        raise typer.Exit(1)


def text(check) -> str:
    drawn, unit = check.simulated, f" {check.unit}" if check.unit else ""
    between = f"; between {number(drawn.low)} and {number(drawn.high)}" if drawn.trials > 1 else ""
    shown = f"{number(check.formula)}{unit}; simulated {number(drawn.mean)}{between}"
    return shown if check.agrees else f"{shown}  DISAGREES"
