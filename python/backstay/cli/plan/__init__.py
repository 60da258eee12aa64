"""`backstay plan QUESTION`: the planner's models on the command line, one file a subcommand.

A subcommand is a module with a function `command` and the text EPILOG. The names of its parameters
are those of the model's arguments, so that a PlanError about `cost_s` becomes a message about
`--cost`.
"""

import functools
import inspect
import os

import typer

from ...plan import files
from ...plan.check import PlanError
from ..example import Command, Group
from ..usage import CommandError
from . import advise, aggregation, cost, explore, figures, fill_time, interval, model, multilevel, replay, strategy, survive, validate

COMMANDS = {
    "interval": interval,
    "multilevel": multilevel,
    "model": model,
    "fill-time": fill_time,
    "strategy": strategy,
    "aggregation": aggregation,
    "survive": survive,
    "cost": cost,
    "validate": validate,
    "figures": figures,
    "replay": replay,
    "advise": advise,
    "explore": explore,
}

app = typer.Typer(
    help="Answer questions about checkpoints before a job runs: how often, how long, how safe.",
    epilog="Example: `backstay plan interval --cost 300 --mtti 86400 --restart 600`. "
    "`backstay plan QUESTION --help` shows options and examples. Every question has --json.",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
)


def option_of(command, parameter: str) -> str:
    """The option that sets a parameter of `command`; the parameter's own name if there is none."""
    found = inspect.signature(command).parameters.get(parameter)
    for note in getattr(found and found.annotation, "__metadata__", ()):
        # Within Annotated, typer takes the first name for the default.
        for name in (getattr(note, "default", None), *(getattr(note, "param_decls", None) or ())):
            if isinstance(name, str) and name.startswith("--"):
                return name
    return parameter


def one_line_errors(name: str, command):
    """`command` with what it may raise turned into one line that names the option."""

    @functools.wraps(command)
    def guarded(*args, **kwargs):
        path = f"backstay plan {name}"
        try:
            return command(*args, **kwargs)
        except PlanError as error:
            raise CommandError(path,
                               f"{option_of(command, error.parameter)} {error.reason}") from error
        except files.WriteError as error:
            raise CommandError(path, str(error), exit_code=1, code="io") from error
        except FileNotFoundError as error:
            reason = "no such file" if error.strerror == os.strerror(error.errno) else error.strerror
            raise CommandError(path, f"{error.filename}: {reason}", exit_code=3,
                               code="not_found") from error
        except OSError as error:
            raise CommandError(path, f"{error.filename}: {error.strerror}", exit_code=1,
                               code="io") from error

    return guarded


for _name, _module in COMMANDS.items():
    app.command(_name, cls=Command, epilog=_module.EPILOG)(one_line_errors(_name, _module.command))
