"""Commands that the pages show exist, and have the options that they are shown with."""

import functools
import re
import subprocess

import pytest
from conftest import PROGRAM, ROOT

# Those that users read; decisions and protocols speak of other things too.
PAGES = ["README.md", *sorted(
    page.relative_to(ROOT).as_posix()
    for pattern in ("docs/*.md", "docs/guide/*.md", "docs/plan/*.md", "docs/man/*.md",
                    "examples/**/*.md") for page in ROOT.glob(pattern))]
COMMAND = re.compile(r"(?<![\w./-])backstay ((?:plan )?[a-z][a-z-]*)((?: [^`\n]*)?)")


def code(text: str) -> list[str]:
    """The lines of each block of code, and what stands between backquotes."""
    blocks = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S))
    plain = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return blocks.splitlines() + re.findall(r"^    (.*)$", plain, re.M) + \
        re.findall(r"`([^`]+)`", plain)


def shown(text: str) -> set[tuple[str, str]]:
    """(command, option) of each command in the code of a page; option "" for the command itself."""
    found = set()
    for line in code(text):
        for command, rest in COMMAND.findall(line):
            rest = re.split(r" -- |[#|;)\"]|  ", rest + " ")[0]
            found |= {(command, option) for option in
                      ["", *re.findall(r"(?<=[\s\[])(--[a-z][a-z-]+|-[a-z])\b", rest)]}
    return found


@functools.cache
def help_of(command: str) -> str:
    done = subprocess.run([PROGRAM, *command.split(), "--help"], capture_output=True, text=True,
                          timeout=60, check=False)
    return done.stdout if done.returncode == 0 else ""


def unknown(command: str, option: str) -> bool:
    return not re.search(rf"(?<![\w-]){option}(?![\w-])", help_of(command)) if option \
        else not help_of(command)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_exist(page):
    wrong = [f"backstay {command} {option}".rstrip()
             for command, option in sorted(shown((ROOT / page).read_text(encoding="utf-8")))
             if unknown(command, option)]
    assert wrong == []


def test_a_command_that_does_not_exist_is_found():
    text = ("`backstay run --no-such -- ./x --other`\n\n"
            "    $ backstay doctor -z\n    backstay nonsense\n")
    assert shown(text) == {("run", ""), ("run", "--no-such"), ("doctor", ""), ("doctor", "-z"),
                           ("nonsense", "")}
    assert unknown("run", "--no-such") and unknown("nonsense", "") and not unknown("run", "--job")
