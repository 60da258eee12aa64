"""The table of subcommands: one module each, a function `command` in it; `plan` has a table of its own."""

import sys

import typer

from ..format.errors import DamagedError, FormatError, IncompleteError, NotFoundError, UnsupportedError
from . import export, plan
from .usage import CommandError, UsageError, report, report_usage

EXIT_FAILED, EXIT_NOTHING, EXIT_DAMAGED = 1, 3, 4

app = typer.Typer(
    name="backstay", add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True, rich_markup_mode=None
)
app.command("export", epilog=export.EPILOG)(export.command)
app.add_typer(plan.app, name="plan")


def exit_code_of(error: Exception) -> int:
    if isinstance(error, (DamagedError, UnsupportedError)):
        return EXIT_DAMAGED
    return EXIT_NOTHING if isinstance(error, (NotFoundError, IncompleteError)) else EXIT_FAILED


def main() -> int:
    try:
        done = app(prog_name="backstay", standalone_mode=False)
    except UsageError as error:
        return report_usage(error)
    except CommandError as error:
        report(error.path, str(error), error.code)
        return error.exit_code
    except (FormatError, OSError) as error:
        print(f"backstay: {error}", file=sys.stderr)
        return exit_code_of(error)
    return done if isinstance(done, int) else 0


if __name__ == "__main__":
    sys.exit(main())
