"""The table of subcommands: one module each, a function `command` in it; `plan` has a table of its
own.
"""

import signal

# Until there is something to clean up, which takes as long as the imports.
signal.signal(signal.SIGINT, signal.SIG_DFL)

import os
import sys
import warnings

import typer

from ..format.errors import DamagedError, FormatError, IncompleteError, NotFoundError, UnsupportedError
from ..plan import files
from . import example, export, plan, report, tune
from .usage import CommandError, UsageError, report_usage, say
from .usage import report as report_error

EXIT_FAILED, EXIT_NOTHING, EXIT_DAMAGED = 1, 3, 4

app = typer.Typer(
    name="backstay", add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True,
    rich_markup_mode=None
)
app.command("export", cls=example.Command, epilog=export.EPILOG)(export.command)
app.command("report", cls=example.Command, epilog=report.EPILOG)(report.command)
app.command("tune", cls=example.Command, epilog=tune.EPILOG)(tune.command)
app.add_typer(plan.app, name="plan")


def exit_code_of(error: Exception) -> int:
    if isinstance(error, (DamagedError, UnsupportedError)):
        return EXIT_DAMAGED
    return EXIT_NOTHING if isinstance(error, (NotFoundError, IncompleteError)) else EXIT_FAILED


CODES = {EXIT_FAILED: "io", EXIT_NOTHING: "not_found", EXIT_DAMAGED: "corrupt"}


def fail(error: Exception) -> int:
    """The message to stderr and, with --json, as an object to stdout (docs/guide/cli.md)."""
    code, message = exit_code_of(error), str(error)
    if isinstance(error, OSError) and not isinstance(error,
                                                     files.WriteError) and error.strerror is not None:
        message = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    report_error("backstay", message, CODES[code])
    return code


def flushed(code: int) -> int:
    """`code`, once everything is written out. What cannot be is thrown away: at exit another
    message would follow.
    """
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code or fail(files.WriteError("standard output", error))
    return code


def show_warning(message, *_) -> None:
    """As all that commands say, without the place in the source."""
    say(f"backstay: {message}")


def main() -> int:
    warnings.showwarning = show_warning
    if sys.stdout is None:
        return fail(OSError("the standard output is closed"))
    try:
        done = app(prog_name="backstay", standalone_mode=False)
    except UsageError as error:
        return report_usage(error)
    except CommandError as error:
        report_error(error.path, str(error), error.code)
        return error.exit_code
    except (FormatError, OSError) as error:
        return fail(error)
    return done if isinstance(done, int) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # As every filter: `backstay plan .. | head` ends without a word.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.reconfigure(errors="replace")  # a terminal that knows no × shows ?
    sys.exit(flushed(main()))
