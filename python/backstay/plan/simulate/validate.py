"""Every closed model of the planner beside its simulation."""

from collections.abc import Callable

from ..check import whole
from . import job_checks, storage_checks
from .check import Check


def parts(jobs: int = 2000, seed: int = 1) -> list[Callable[[], list[Check]]]:
    """All comparisons, to be called one after the other; `jobs` played through for each. The same
    seed gives the same answer.
    """
    copies = whole("jobs", jobs, 8, 1_000_000)
    return [*job_checks.parts(copies, whole("seed", seed, 0)), *storage_checks.parts(copies, seed)]


def checks(jobs: int = 2000, seed: int = 1) -> list[Check]:
    """All comparisons at once."""
    return [check for part in parts(jobs, seed) for check in part()]
