"""Errors of the command line: one line to stderr and, with --json, an object to stdout
(docs/guide/cli.md).
"""

import contextlib
import json
import sys

import typer

# The parser's exception. typer's own from 0.2x on, click's before: both are bases of BadParameter.
UsageError = typer.BadParameter.__mro__[1]

EXIT_USAGE = 2


class CommandError(Exception):
    """A subcommand cannot go on. `path` is the command as typed, `code` a name of
    docs/guide/cli.md.
    """

    def __init__(self, path: str, message: str, exit_code: int = EXIT_USAGE, code: str = "invalid"):
        super().__init__(message)
        self.path, self.exit_code, self.code = path, exit_code, code


def printable(text: str, kept: str = "") -> str:
    """Control characters and bytes that are no UTF-8 as \\xNN: what a file says, or is named, must
    not speak to the terminal. Characters in `kept` stay.
    """

    def visible(char: str) -> str:
        is_control = char < " " or "\x7f" <= char < "\xa0"
        is_lone_byte = "\udc80" <= char <= "\udcff"
        if char in kept or not (is_control or is_lone_byte):
            return char
        return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))

    return "".join(map(visible, text))


def say(line: str) -> None:
    """To stderr. Where it is closed or full the exit code has to do: standard output is for
    results.
    """
    try:
        if sys.stderr is not None:
            print(printable(line, "\n\t"), file=sys.stderr, flush=True)
    except OSError:
        # With what it holds: Python would try again at exit, and fail with a code of its own.
        sys.stderr = None


def on_terminal() -> bool:
    """Whether a person sees stderr: there progress is shown."""
    return sys.stderr is not None and sys.stderr.isatty()


def shown(parts, what: str):
    """The parts one after the other, with a bar on the terminal that goes away at the end."""
    if not on_terminal():
        return parts
    from rich.console import Console  # here: most commands end without it
    from rich.progress import track

    return track(parts, what, console=Console(stderr=True), transient=True)


def report(path: str, message: str, code: str) -> None:
    say(f"{path}: {message}")
    if "--json" in sys.argv[:sys.argv.index("--") if "--" in sys.argv else None]:
        with contextlib.suppress(OSError):  # the output may be what failed
            print(json.dumps({"error": {"code": code, "message": message}}, indent=2))


def report_usage(error) -> int:
    """Reports an error of the parser; returns the exit code."""
    message = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "backstay"
    if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help text
        say(error.format_message())
    else:
        report(path, f"{message.rstrip('.')}; `{path} --help` shows the options", "invalid")
    return EXIT_USAGE
