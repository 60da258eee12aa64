"""Which codes backstay.h lists for each function. Standard library only."""

import re
from functools import cache
from pathlib import Path

HEADER = Path(__file__).resolve().parents[2] / "include" / "backstay" / "backstay.h"


@cache
def listed():
    """{function: set of numbers}; of a function that lists none, nothing."""
    header = HEADER.read_text()
    numbers = dict(re.findall(r"BACKSTAY_(E[A-Z]+) = (\d+)", header))
    functions = {}
    for comment, name in re.findall(r"/\*((?:(?!\*/).)*)\*/\s*BACKSTAY_API int backstay_(\w+)\(",
                                    header, re.DOTALL):
        if "Errors:" not in comment:
            continue
        errors = comment.split("Errors:", 1)[1]
        codes = {int(numbers[word]) for word in re.findall(r"\bE[A-Z]+\b", errors) if word
                 in numbers}
        for other in re.findall(r"as backstay_(\w+)", errors):
            codes |= functions[other]
        functions[name] = codes
    return functions
