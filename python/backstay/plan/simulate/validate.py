"""Every closed model of the planner beside its simulation."""

from ..check import whole
from . import job_checks, storage_checks
from .check import Check


def checks(jobs: int = 2000, seed: int = 1) -> list[Check]:
    """All comparisons; `jobs` played through for each. The same seed gives the same answer."""
    copies = whole("jobs", jobs, 8, 1_000_000)
    return [*job_checks.checks(copies, whole("seed", seed, 0)), *storage_checks.checks(copies, seed)]
