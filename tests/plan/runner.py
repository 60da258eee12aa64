"""`backstay plan ...` in this process: what it prints and its exit code."""

import contextlib
import io
import json
import sys
from unittest import mock

from backstay.cli.__main__ import main


def run(*words) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    argv = ["backstay", "plan", *map(str, words)]
    with mock.patch.object(sys, "argv",
                           argv), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main()
    return code, out.getvalue(), err.getvalue()


def strict(text: str):
    """JSON without NaN and infinity, which Python would read."""
    def refuse(name):
        raise AssertionError(f"{name} in JSON")

    return json.loads(text, parse_constant=refuse)


def result(*words):
    code, out, err = run(*words, "--json")
    assert (code, err) == (0, ""), err
    return strict(out)
