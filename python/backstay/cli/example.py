"""Help that opens with an example: the first one of the command's epilog."""

import re

from typer.core import TyperCommand, TyperGroup


def first_example(epilog: str) -> str:
    found = re.search(r"`(backstay [^`]*)`|^  (backstay .*?)(?:  .*)?$", epilog, re.MULTILINE)
    return found.group(1) or found.group(2)


class ExampleFirst:
    def format_help(self, ctx, formatter):
        formatter.write(f"Example: {first_example(self.epilog)}\n\n")
        super().format_help(ctx, formatter)


class Command(ExampleFirst, TyperCommand):
    pass


class Group(ExampleFirst, TyperGroup):
    pass
