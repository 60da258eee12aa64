"""The real logs, which are not part of the repository, and the table of docs/plan/replay.md.
`--write` renews it.
"""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "plan" / "replay.md"
LANL, HBD = "LA-UR-05-7318-failure-data-1996-2005.csv.xz", "infinitehbd-fault_trace.json"
CASES = [(LANL, "2"), (LANL, "8"), (LANL, "16"), (LANL, "18"), (LANL, "19"), (LANL, "20"),
         (HBD, None)]


def folder() -> pathlib.Path:
    return pathlib.Path(os.environ.get("BACKSTAY_TRACES") or ROOT.parent / "shared" / "data"
                        / "failure-traces")


def words(name, system):
    return ("replay", "--trace", folder() / name, *(("--system", system) if system else ()),
            "--cost", 300, "--restart", 600)


def row(name, system, found) -> str:
    label = f"LANL {system}" if system else "InfiniteHBD"
    lost = [f"{100 * found['lost_fraction'][one]:.2f} %" for one
            in ("daly", "best", "four_times_daly")]
    one, more = found["incident_share"]["1"], 1 - found["incident_share"]["1"]
    cells = [label, str(found["nodes"]), str(found["incidents"]), f"{found['mtti_s'] / 3600:.1f} h",
             f"{found['coefficient_of_variation']:.2f}", f"{found['weibull_shape']:.2f}",
             f"{100 * one:.1f} / {100 * more:.1f} %", *lost]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def table(result) -> str:
    head = ["log", "nodes", "incidents", "MTTI", "CV", "Weibull shape", "1 node / more",
            "lost: Daly", "best", "4 × Daly"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join(lines + [row(*case, result(*words(*case))) for case in CASES])


def parts() -> tuple[str, str, str]:
    """The page before, in, and after the table."""
    before, rest = PAGE.read_text(encoding="utf-8").split("<!-- real -->\n")
    inside, after = rest.split("<!-- end -->")
    return before, inside.strip("\n"), after


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    from runner import result

    before, _, after = parts()
    PAGE.write_text(f"{before}<!-- real -->\n{table(result)}\n<!-- end -->{after}",
                    encoding="utf-8")
