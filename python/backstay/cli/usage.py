"""Errors of the command line: one line to stderr and, with --json, an object to stdout (docs/guide/cli.md)."""

import contextlib
import json
import sys

import typer

# What the parser raises. typer's own from 0.2x on, click's before: both stand above BadParameter.
UsageError = typer.BadParameter.__mro__[1]

EXIT_USAGE = 2


class CommandError(Exception):
    """A subcommand cannot go on. `path` is the command as typed, `code` a name of docs/guide/cli.md."""

    def __init__(self, path: str, message: str, exit_code: int = EXIT_USAGE, code: str = "invalid"):
        super().__init__(message)
        self.path, self.exit_code, self.code = path, exit_code, code


def report(path: str, message: str, code: str) -> None:
    print(f"{path}: {message}", file=sys.stderr)
    if "--json" in sys.argv:
        with contextlib.suppress(OSError):  # the output may be what failed
            print(json.dumps({"error": {"code": code, "message": message}}, indent=2))


def report_usage(error) -> int:
    """Reports an error of the parser; returns the exit code."""
    message = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "backstay"
    if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help text
        print(error.format_message(), file=sys.stderr)
    else:
        report(path, f"{message.rstrip('.')}; `{path} --help` shows the options", "invalid")
    return EXIT_USAGE
