"""What the page shows for a position of its sliders; model.js computes the same.
docs/plan/explore.md.
"""

from typing import NamedTuple

from .. import levels
from .sliders import Settings


class Answer(NamedTuple):
    """Times in s. `interval_s`, `lag_s`, `restart_s`: local, protected, durable. `lost`: seconds
    per second of computing, saving, work done again, under way, restarts. `survival`: of `losses`
    nodes at once (all, if there are fewer)."""

    mtti_s: float
    blocked_s: float
    interval_s: tuple[float, float, float]
    lag_s: tuple[float, float, float]
    restart_s: tuple[float, float, float]
    lost: tuple[float, float, float, float]
    efficiency: float
    unprotected_share: float
    survival: float


def parts(settings: Settings) -> tuple[levels.Machine, levels.Failures, levels.Choice]:
    """The machine, its failures and the protection that the sliders show."""
    machine = levels.Machine(settings.nodes, settings.saved_bytes, *settings[4:8])
    failures = levels.Failures(settings.node_mtti_s / settings.nodes,
                               software_share=settings.software_share)
    choice = next(one for one in levels.choices(settings.nodes, failures)
                  if one.name == settings.protection)
    return machine, failures, choice


def answer(settings: Settings) -> Answer:
    """Raises PlanError for values out of range."""
    machine, failures, choice = parts(settings)
    levels.checked(machine, failures)
    plan = levels.plan(machine, failures, choice)
    lost = levels.lost(plan, failures)
    every = (plan.interval_s, plan.interval_s, plan.interval_s * plan.durable_every)
    survival = choice.scheme.probability(min(settings.losses, settings.nodes))
    return Answer(failures.mtti_s, plan.blocked_s, every, plan.lag_s, plan.restart_s, tuple(lost),
                  lost.efficiency,
                  choice.lost_share, survival)  # fmt: skip
