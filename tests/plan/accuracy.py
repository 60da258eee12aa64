"""The table of docs/plan/survival.md: e^(-λ) beside the share of drawn losses survived. `--write`
draws it again.
"""

import pathlib
import sys

from backstay.plan import monte_carlo, protection

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "plan" / "survival.md"
TRIALS, SEED = 200_000, 20_261_121
CASES = [(8, 1, 2), (16, 1, 2), (16, 1, 4), (16, 2, 6), (32, 2, 6), (64, 1, 3), (64, 2, 8),
         (256, 1, 5), (256, 3, 40), (1024, 4, 165)]


def draw(nodes, replicas, failures, trials=TRIALS, confidence=0.99):
    return monte_carlo.survived(protection.RandomReplicas(nodes, replicas=replicas), failures,
                                trials, SEED, confidence)


def table() -> str:
    lines = ["| nodes | replicas | lost | e^(−λ) | 1 − λ | drawn | 99 % between |",
             "|---|---|---|---|---|---|---|"]
    for nodes, replicas, failures in CASES:
        scheme, drawn = protection.RandomReplicas(nodes, replicas=replicas), draw(nodes, replicas,
            failures)
        lines.append(f"| {nodes} | {replicas} | {failures} | {scheme.probability(failures):.4f} | "
                     f"{scheme.probability_at_least(failures):.4f} | {drawn.share:.4f} | "
                     f"{drawn.low:.4f} and {drawn.high:.4f} |")  # fmt: skip
    return "\n".join(lines)


def rows():
    """(nodes, replicas, lost, formula, bound, drawn, low, high) of the page."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 7 and cells[0].isdigit():
            yield (*map(int, cells[:3]), *map(float, cells[3:6]),
                   *map(float, cells[6].split(" and ")))


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    before, rest = PAGE.read_text(encoding="utf-8").split("<!-- drawn -->\n")
    after = rest.split("<!-- end -->")[1]
    PAGE.write_text(f"{before}<!-- drawn -->\n{table()}\n<!-- end -->{after}", encoding="utf-8")
