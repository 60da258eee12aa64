"""The table of subcommands: one module each, a function `command` in it."""

import sys

import typer

from ..format.errors import DamagedError, FormatError, IncompleteError, NotFoundError, UnsupportedError
from . import export

EXIT_FAILED, EXIT_NOTHING, EXIT_DAMAGED = 1, 3, 4

app = typer.Typer(
    name="backstay", add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True, rich_markup_mode=None
)
app.command("export", epilog=export.EPILOG)(export.command)


@app.callback()
def _several() -> None:
    """Makes typer keep the subcommand's name while there is only one."""


def exit_code_of(error: Exception) -> int:
    if isinstance(error, (DamagedError, UnsupportedError)):
        return EXIT_DAMAGED
    return EXIT_NOTHING if isinstance(error, (NotFoundError, IncompleteError)) else EXIT_FAILED


def main() -> int:
    try:
        app(prog_name="backstay")
    except (FormatError, OSError) as error:
        print(f"backstay: {error}", file=sys.stderr)
        return exit_code_of(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
