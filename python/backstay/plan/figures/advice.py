"""The picture of `backstay plan advise`: efficiency against the interval, and what each protection
loses.
"""

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from .. import levels
from ..words import counted
from .style import COLOURS, DASHES, RULES, note

PARTS = {"saving": COLOURS[1], "work done again": COLOURS[0], "not yet safe": COLOURS[4],
         "restarts": COLOURS[2]}


def _intervals(axes, known, advice) -> None:
    plan = advice.plan
    tau = plan.interval_s * np.geomspace(1 / 16, 16, 129)
    drain_s = plan.interval_s * plan.durable_every
    efficiency = [100
                  * levels.lost(plan._replace(interval_s=one,
                                              durable_every=max(1, round(drain_s / one))),
                                              known).efficiency
                  for one in tau]  # fmt: skip
    axes.plot(tau, efficiency, color=COLOURS[0], linestyle=DASHES[0], label="first order")
    drawn = 100 * np.array([advice.efficiency.mean, advice.efficiency.low, advice.efficiency.high])
    axes.errorbar([plan.interval_s], drawn[:1], [[drawn[0] - drawn[1]], [drawn[2] - drawn[0]]],
                  color=COLOURS[6], marker="D",
                  linestyle="none", capsize=4, label="advice, simulated", zorder=3)  # fmt: skip
    if plan.lag_s[1] > tau[0]:
        axes.axvspan(tau[0], plan.lag_s[1], color="#eeeeee", zorder=0,
                     label="sooner than protected")
    axes.set_xscale("log")
    axes.set_xlim(tau[0], tau[-1])
    axes.set_title("How often to save", loc="left")
    axes.set_xlabel("interval (s, log scale)")
    axes.set_ylabel("efficiency (%)")
    axes.legend(loc="lower center")


def _protections(axes, machine, known, advice) -> None:
    found = levels.choices(machine.nodes, known)
    lost = [levels.lost(levels.plan(machine, known, choice), known) for choice in found]
    place, bottom = np.arange(len(found)), np.zeros(len(found))
    for number, (name, colour) in enumerate(PARTS.items()):
        share = np.array([100 * one[number] * one.efficiency for one in lost])
        axes.barh(place, share, 0.7, left=bottom, color=colour, label=name, edgecolor="white",
                  linewidth=0.5)
        bottom += share
    labels = axes.set_yticks(place, [choice.name for choice in found])
    for label, choice in zip(labels, found, strict=True):
        label.label1.set_fontweight("bold" if choice.name == advice.plan.choice.name else "normal")
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, bottom.max() * 1.05)
    axes.set_title("What each protection loses", loc="left")
    axes.set_xlabel("share of the time (%)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)


def figure(machine: levels.Machine, known: levels.Failures, advice) -> Figure:
    """`advice`: a simulate.advise.Advice of this machine and these failures."""
    with matplotlib.rc_context(RULES):
        made = Figure(figsize=(12.0, 5.2), layout="constrained")
        left, right = made.subplots(1, 2)
        _intervals(left, known, advice)
        _protections(right, machine, known, advice)
        note(made,
             f"{counted(machine.nodes, 'node')}, mean time to interrupt {known.mtti_s / 3600:.3g} "
             f"h; the advice in bold; first order.")  # fmt: skip
    return made
