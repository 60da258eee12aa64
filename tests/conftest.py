"""Leaves out what tests/outer.txt names. Only `make test` loads this file (scripts/test)."""

import fnmatch
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
LINES = (HERE / "outer.txt").read_text().splitlines()
NAMES = [line.split()[0] for line in LINES if line and not line.startswith("#")]


def pytest_collection_modifyitems(config, items):
    known = [f"{item.path.relative_to(HERE)}::{item.name}" for item in items]
    left_out = set()
    for name in NAMES:
        pattern = name.removeprefix("!")
        if not any(one.startswith(f"{pattern.partition('::')[0]}::") for one in known):
            continue
        meant = set(fnmatch.filter(known, pattern))
        if not meant:
            raise pytest.UsageError(f"tests/outer.txt names {pattern}, which is no test")
        left_out = left_out - meant if name.startswith("!") else left_out | meant
    config.hook.pytest_deselected(
        items=[item for item, name in zip(items, known, strict=True) if name in left_out])
    items[:] = [item for item, name in zip(items, known, strict=True) if name not in left_out]
