"""The examples in docs/plan, and in the guide's page on choosing: a line `    $ backstay plan ...`
and, indented below, what it prints. `--write` renews them.
"""

import os
import pathlib
import shlex
import sys

PAGES = pathlib.Path(__file__).parents[2] / "docs" / "plan"
CHOOSING = PAGES.parent / "guide" / "choosing.md"
PROMPT = "    $ backstay plan "


def renewed(text: str, run) -> str:
    """The page with each example's output as `run` gives it."""
    lines, skipping = [], False
    for line in text.splitlines():
        if line.startswith(PROMPT):
            code, out, err = run(*shlex.split(line[len(PROMPT):]))
            lines += [line, *(f"    {one}".rstrip() for one in (out + err).splitlines())]
            skipping = True
        elif not (skipping and line.startswith("    ")):
            skipping = False
            lines.append(line)
    return "\n".join(lines) + "\n"


def examples():
    return [CHOOSING, *sorted(path for path in PAGES.glob("*.md")
                              if PROMPT in path.read_text(encoding="utf-8"))]


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    from runner import run

    os.chdir(PAGES.parents[1])  # the examples name files from here
    for page in examples():
        page.write_text(renewed(page.read_text(encoding="utf-8"), run), encoding="utf-8")
