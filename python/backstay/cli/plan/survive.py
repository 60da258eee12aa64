"""`backstay plan survive`: how many nodes may be lost at once."""

import re
from typing import Annotated, Optional

import typer

from ...plan import monte_carlo, protection
from ...plan.check import PlanError, whole
from ...plan.words import counted
from ..usage import shown
from . import output
from .output import AsJson, probability

EPILOG = (
    "\b\nExamples:\n"
    "  backstay plan survive --nodes 2048 --replicas 4 --failures 112 --json\n"
    "  backstay plan survive --nodes 2048 --replicas 4 --target 0.999\n"
    "  backstay plan survive --nodes 2048 --parity 14+2 --domain-size 32      (racks of 32: losses "
    "count racks)\n"
    "  backstay plan survive --nodes 512 --partners 1 --failures 5 --monte-carlo 20000\n\n"
    f"{output.EXIT_CODES}"
)

# docs/plan/survival.md: below this many units e^(−λ) may be off by more than that.
FEW_UNITS, HOPEFUL = 64, 1e-3
TARGETS = (0.9, 0.99, 0.999)  # the columns of paper 002's Table 2


def parse_parity(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"0*([1-9][0-9]{0,8})\+0*([1-9][0-9]{0,8})", text)
    if not found:
        raise PlanError("parity", f"must be DATA+PARITY such as 14+2, not {text[:40]!r}")
    return int(found[1]), int(found[2])


def scheme_of(nodes, replicas, partners, parity, domain_nodes, ignore_domains) -> protection.Scheme:
    if sum(one is not None for one in (replicas, partners, parity)) != 1:
        raise PlanError("replicas", "or --partners or --parity must be given, one of them")
    if ignore_domains and domain_nodes == 1:
        raise PlanError("ignore_domains", "needs --domain-size")
    shared = {"nodes": nodes, "domain_nodes": domain_nodes, "ignore_domains": ignore_domains}
    if replicas is not None:
        return protection.RandomReplicas(**shared, replicas=replicas)
    if parity is not None:
        data, extra = parse_parity(parity)
        return protection.Parity(**shared, data=data, parity=extra)
    try:
        return protection.Partners(**shared, replicas=partners)
    except PlanError as error:
        raise PlanError("partners" if error.parameter == "replicas" else error.parameter,
                        error.reason) from error


def name_of(scheme) -> str:
    if isinstance(scheme, protection.RandomReplicas):
        return counted(scheme.replicas, "random replica")
    if isinstance(scheme, protection.Parity):
        return f"parity groups of {scheme.data}+{scheme.parity}"
    return counted(scheme.replicas, "fixed partner")


def units(scheme, number: int) -> str:
    return counted(number, "failure domain" if scheme.domain_nodes > 1 else "node")


def command(
    nodes: Annotated[int,
                     typer.Option("--nodes", parser=output.whole_number, metavar="N",
                                  help="Nodes of the job")],
    replicas: Annotated[
        Optional[int],
        typer.Option("--replicas", parser=output.whole_number, metavar="R",
                     help="Random replicas of each node's checkpoint")
    ] = None,
    partners: Annotated[
        Optional[int],
        typer.Option("--partners", parser=output.whole_number, metavar="R",
                     help="Copies on the next R nodes instead")
    ] = None,
    parity: Annotated[
        Optional[str],
        typer.Option("--parity", metavar="K+M",
                     help="Groups of K+M nodes instead, any M of which may go"),
    ] = None,
    failures: Annotated[
        Optional[int],
        typer.Option("--failures", parser=output.whole_number, metavar="F",
                     help="Nodes (domains) lost at once")
    ] = None,
    target: Annotated[
        Optional[float],
        typer.Option("--target", metavar="P", help="Probability to keep, such as 0.999")
    ] = None,
    domain_nodes: Annotated[
        int, typer.Option("--domain-size", parser=output.whole_number, metavar="D", help="Nodes of a rack; then racks are lost")
    ] = 1,
    ignore_domains: Annotated[
        bool, typer.Option("--ignore-domains", help="Placement that does not know the racks")
    ] = False,
    trials: Annotated[
        Optional[int],
        typer.Option("--monte-carlo", parser=output.whole_number, metavar="TRIALS",
                     help="Draw losses on real placements too")
    ] = None,
    seed: Annotated[int,
                    typer.Option("--seed", parser=output.whole_number, metavar="S",
                                 help="Of the Monte Carlo")] = 1,
    as_json: AsJson = False,
) -> None:
    """How many nodes may be lost at once.

    Chance of a restart with replicas, fixed partners or parity (paper 002, § 5.4). --failures gives
    a probability, --target a number of failures; without either, the numbers for 90, 99 and 99.9 %.
    """
    scheme = scheme_of(nodes, replicas, partners, parity, domain_nodes, ignore_domains)
    if failures is not None and target is not None:
        raise PlanError("failures", "and --target cannot both be given")
    if trials is not None and failures is None:
        raise PlanError("trials", "needs --failures")
    result = {"nodes": nodes, "scheme": name_of(scheme), "units": scheme.units,
              "domain_nodes": domain_nodes,
              "exact": scheme.exact}  # fmt: skip
    lines = [(name_of(scheme),
              units(scheme, scheme.units)
              + (" (placement ignores them)" if ignore_domains else ""))]
    if failures is not None:
        after_losses(scheme, failures, trials, seed, result, lines)
    else:
        allowed(scheme, target, result, lines)
    output.show(result, lines, as_json, notes(scheme, result))


def after_losses(scheme, failures, trials, seed, result, lines) -> None:
    lost = whole("failures", failures, 0, scheme.units, "what there is to lose")
    result.update(failures=lost, probability=scheme.probability(lost))
    lines.append((f"restart after losing {units(scheme, lost)}",
                  probability(result["probability"])))
    if not scheme.exact:
        result["probability_at_least"] = scheme.probability_at_least(lost)
        lines.append(("at least", probability(result["probability_at_least"])))
    if trials is not None:
        drawn = monte_carlo.survived(scheme, lost, trials, seed,
                                     bar=lambda parts: shown(parts, "drawn"))
        result["monte_carlo"] = {**drawn._asdict(), "confidence": 0.99, "seed": seed}
        lines.append(
            (
                f"drawn {counted(drawn.trials, 'time')}, seed {seed}",
                f"{drawn.share:.6g}; 99 % between {drawn.low:.6g} and {drawn.high:.6g}",
            )
        )


def allowed(scheme, target, result, lines) -> None:
    rows = [{"target": one, "allowed_failures": scheme.allowed_failures(one)} for one
            in ((target,) if target is not None else TARGETS)]
    if not scheme.exact:
        rows = [{**row,
                 "allowed_failures_at_least": scheme.allowed_failures_at_least(row["target"])}
                 for row in rows]
    result.update(rows[0] if target is not None else {"allowed": rows})
    for row in rows:
        lines.append(
            (
                f"restart with at least {100 * row['target']:.6g} % after losing",
                units(scheme, row["allowed_failures"]),
            )
        )


def notes(scheme, result) -> list[str]:
    """The bound 1 − λ, if e^(−λ) is too hopeful."""
    if scheme.exact or scheme.units >= FEW_UNITS:
        return []
    hopeful = f"with so few {'failure domains' if scheme.domain_nodes > 1 else 'nodes'} the approximation is too hopeful"
    if "probability" in result:
        wide = result["probability"] - result["probability_at_least"] > HOPEFUL
        return [f"{hopeful}: the truth lies between it and \"at least\"; --monte-carlo shows where"] if wide else []
    rows = [row for row in result.get("allowed", [result]) if row["allowed_failures_at_least"]
            < row["allowed_failures"]]
    sure = ", ".join(f"{units(scheme, row['allowed_failures_at_least'])} at "
                     f"{100 * row['target']:.6g} %" for row in rows)
    return [f"{hopeful}: by the bound 1 − λ it is {sure}; --failures with --monte-carlo shows what "
            f"is between"] if rows else []
