#!/usr/bin/env python3
"""Every command of docs/guide/getting-started.md and of README.md as written there, in one shell a
page, and its output beside the page's.

The page's output is a pattern: numbers, times and sizes may differ, `...` matches any lines.
Commands that take minutes are replaced; what replaces them is said below. Standard library only.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scratch import agent_ends, run

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guide" / "getting-started.md"
README = ROOT / "README.md"
SKIPPED = 77
# What other tests do, or CTest did (the build, the demo); and a kill that waits for two new
# versions, not for time.
NEWEST = "backstay ls heat --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[\"versions\"][-1][\"version\"])'"
INSTEAD = {
    "make build": "echo built",
    "make demo": "echo shown",
    "make install PREFIX=$HOME/.local": 'scripts/install "$HOME/.local" >&2 && echo installed',
    "(sleep 3; kill -9 $(pgrep -n -f '^./heat')) &":
        f"first=$({NEWEST}); (until [ $({NEWEST}) -gt $((first + 1)) ]; do sleep 0.05; done; kill "
        f"-9 $(pgrep -n -f '^./heat')) &",
    "export PATH=$PWD/bin:$PATH": 'mkdir "$HOME/bin" && ln -s "$BUILD/src/bin/backstay" '
                                  '"$HOME/bin" && export PATH=$HOME/bin:$PATH',
}
# README.md comes after the other page, in a folder with its program.
INSTEAD_IN_README = {"make build": "echo built",
                     "make install PREFIX=$HOME/.local": "echo installed"}
MARK = "@@ command"


def steps(page: str) -> list[tuple[str, list[str]]]:
    """Commands with the lines that the page shows below each."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def plain(line: str) -> str:
    """Without what differs from run to run."""
    line = re.sub(r"\b[0-9A-F]{16}\b", "H", line)
    line = re.sub(r"\d+(\.\d+)?(e-\d+)? (d|h|min) \d+ (h|min|s)\b|\d+(\.\d+)?(e-\d+)? "
                  r"(ms|s|min|h|d)\b", "T", line)
    line = re.sub(r"\d+(\.\d+)? ([kKMGT]i?)?B(/s)?\b", "BYTES", line)
    line = re.sub(r"(/[\w.-]+)+/(backstay-me|versions)\b", "DIR", line)
    line = re.sub(r"\d+(\.\d+)?(e-\d+)?", "#", line)
    return re.sub(r"\s+", " ", line).strip()


def differs(shown: list[str], said: list[str]) -> str:
    """The first line of the page that the output lacks; "" where it has all, in their order."""
    at = 0
    anything = False
    for line in shown:
        if line == "...":
            anything = True
            continue
        rest = [plain(one) for one in said[at:]]
        if plain(line) not in (rest if anything else rest[:1]):
            return line
        at += rest.index(plain(line)) + 1
        anything = False
    return "" if anything or at == len(said) else f"(nothing) where the output has: {said[at]}"


def script(commands: list[str], instead: dict[str, str]) -> str:
    if missing := set(instead) - set(commands):
        sys.exit(f"the page has no more: {missing}")
    lines = ["set -e"]
    for number, command in enumerate(commands):
        lines += [f"echo; echo '{MARK} {number}'", instead.get(command, command)]
    return "\n".join(lines)


def outputs(text: str, count: int) -> list[list[str]]:
    parts = re.split(rf"\n?^{MARK} \d+\n", text, flags=re.MULTILINE)[1:]
    if len(parts) != count:
        sys.exit(f"only {len(parts)} of {count} commands ran:\n{text}")
    return [[line for line in part.splitlines() if line.strip()] for part in parts]


def environment(build: Path, cmake: str, home: Path) -> dict[str, str]:
    mine = {key: value for key,
            value in os.environ.items() if not key.startswith(("BACKSTAY_", "XDG_"))}
    return mine | {
        "HOME": str(home), "BUILD": str(build), "CMAKE": cmake,
        "BACKSTAY_DIR": str(home / "versions"),
        "BACKSTAY_AGENT_SOCKET": str(home / "agent" / "socket"),
        "BACKSTAY_AGENT_IDLE_EXIT_S": "2", "BACKSTAY_POOL_SIZE_MIB": "64",
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }  # fmt: skip


def checksums(said: list[list[str]], steps_done: int) -> set[str]:
    return set(re.findall(rf"done step {steps_done} checksum (\w+)",
                          "\n".join(line for part in said for line in part)))


def walk(page: Path, instead: dict[str, str], folder: Path,
         surroundings: dict[str, str]) -> list[list[str]]:
    """What each command of the page said, started in `folder`."""
    shows = steps(page.read_text())
    text = run(["bash", "-c", script([command for command, _ in shows], instead)], cwd=folder,
               env=surroundings, timeout_s=1000, errors="replace")
    said = outputs(text, len(shows))
    for (command, shown), lines in zip(shows, said, strict=True):
        shown = [line for line in shown if line.strip()]
        if lacks := differs(shown, lines):
            sys.exit(f"$ {command}\n{page.name} shows: {lacks}\nit said:\n" + "\n".join(lines))
        print("\n".join([f"ok: {command}", *lines]), flush=True)
    return said


def walk_all(surroundings: dict[str, str], home: Path) -> None:
    said = walk(PAGE, INSTEAD, ROOT, surroundings)
    if len(checksums(said, 40000)) != 1:
        sys.exit(f"the result after a kill is another one: {checksums(said, 40000)}")
    program = home / "program"
    program.mkdir()
    (program / "steps.c").write_text(re.search(r"^```c\n(.*?)^```$", README.read_text(),
                                               re.MULTILINE | re.DOTALL)[1])
    walk(README, INSTEAD_IN_README, program, surroundings)


def sees_differences() -> None:
    """A comparison that accepts everything would pass every page."""
    shown = ["version 1 step 4890", "...", "done step 9 checksum B1F79A6712CFDC72"]
    good = ["version 7 step 3", "more", "done step 9 checksum 00000000000000FF"]
    assert differs(shown, good) == ""
    assert differs(shown, good[1:]) == shown[0]
    assert differs(shown, good[:2]) == shown[2]
    assert differs(shown, [*good, "more"]) != ""
    assert plain("7 local; 0.058 % in 7.8 s, 2 min 3 s") == plain(
        "12 local; 3e-05 % in 1.0 s, 5.2 ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--cmake", required=True)
    arguments = parser.parse_args()
    sees_differences()
    if not shutil.which("mpicc.openmpi"):
        print("left out: no Open MPI")
        sys.exit(SKIPPED)
    home = Path(tempfile.mkdtemp(prefix="backstay-walk-"))
    try:
        walk_all(environment(arguments.build, arguments.cmake, home), home)
        agent_ends(home)
    finally:
        subprocess.run([home / ".local" / "bin" / "backstay", "agent", "stop"], check=False,
                       capture_output=True,
                       env=environment(arguments.build, arguments.cmake, home)) if (home
                           / ".local").exists() else None
        shutil.rmtree(home, ignore_errors=True)


main()
