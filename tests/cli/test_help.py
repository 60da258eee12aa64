"""Help of the compiled commands: how it is asked for, and the terminal that it has to fit."""

import re

import pytest
from test_command_line import COMMANDS


def test_help_is_shown_however_it_is_asked_for(world):
    for asked, shown in (([], []), (["help"], []), (["help", "run"], ["run"]),
                         (["help", "plan", "cost"], ["plan", "cost"])):
        done = world.run(*asked)
        assert (done.returncode, done.stderr) == (0, "") and done.stdout == world.run(
            *shown, "--help").stdout


@pytest.mark.parametrize("columns", [60, 80, 132])
def test_help_fits_the_terminal(world, columns):
    for command in ([], *([name] for name in COMMANDS)):
        text = world.run(*command, "--help", env={"COLUMNS": str(columns)}).stdout
        for line in text.splitlines():  # an example is there to be copied: it stays whole
            assert len(line) <= columns or re.match(r"Example: |  (\S.*)?backstay ", line), line
    assert max(map(len, text.splitlines())) > 40 and " ".join(text.split()) == " ".join(
        world.run(*command, "--help").stdout.split())
