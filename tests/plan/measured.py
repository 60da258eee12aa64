"""The table of docs/plan/aggregation.md: the model beside a run of bench/write_pattern. `--write`
makes it again.

docs/plan/write_pattern.json holds the run, as the program printed it, and what bench/checkpoint
measured just before: a node's copy into memory and its disk.
"""

import json
import pathlib
import sys

import numpy as np
from backstay.plan import aggregation

DOCS = pathlib.Path(__file__).parents[2] / "docs" / "plan"
PAGE, RUN = DOCS / "aggregation.md", DOCS / "write_pattern.json"
BEGIN, END = "<!-- measured -->\n", "<!-- end -->"
BUFFER_BYTES = 4 * 2**20
# bench/harness/pattern.h.
WRITES, BYTES = np.array([0.60, 0.392, 0.008]), np.array([0.015, 0.195, 0.79])
HEAD = "| way | requests: model | measured | program waits, s: model | measured | on disk, s: model | measured |"


def found() -> dict:
    return json.loads(RUN.read_text(encoding="utf-8"))


def predicted(run: dict) -> dict[str, tuple[float, float, float]]:
    """For each way (requests, how long the program waits in s, until all is on disk in s)."""
    made, disk, copy = run["write_pattern"], run["disk_bytes_per_s"], run["copy_bytes_per_s"]
    counts = made["writes"] / made["processes"] * WRITES
    writes = aggregation.Histogram(made["bytes"] / made["processes"] * BYTES / counts, counts)
    alone = aggregation.without_pool(writes, made["processes"], disk, 0.0)
    pooled = aggregation.with_pool(writes, made["processes"], disk, 0.0, BUFFER_BYTES)
    ways = {"direct": (alone.requests, alone.disk_s, alone.disk_s)}
    for way in ("pool", "pool_paper"):
        memory = made["ways"][way]["memory_bytes"]
        waits = aggregation.blocked_s(writes, made["processes"], memory, copy, pooled)
        ways[way] = (pooled.requests, waits, pooled.disk_s)
    return ways


def table() -> str:
    run = found()
    lines = [HEAD, "|---" * 7 + "|"]
    for way, (requests, waits, on_disk) in predicted(run).items():
        real = run["write_pattern"]["ways"][way]
        lines.append(f"| `{way}` | {requests:.0f} | {real['write_requests']:.0f} | {waits:.2f} | "
                     f"{real['blocked_s']:.2f} | "
                     f"{on_disk:.2f} | {real['on_disk_s']:.2f} |")  # fmt: skip
    return "\n".join(lines) + "\n"


def page_with(text: str) -> str:
    before, rest = text.split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END, 1)[1]


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
