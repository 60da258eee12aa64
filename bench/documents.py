"""Writes the figures of one result into the documents, between markers:

    <!-- bench:NAME -->  (generated)  <!-- /bench:NAME -->

tests/bench/documents_test.py fails where a document and bench/results/reference.json differ.
"""

import json
import re

import machine
import tables

REFERENCE = "bench/results/reference.json"
DOCUMENTS = ("README.md", "docs/benchmarks.md", "docs/protocol/tree.md")
BLOCK = re.compile(r"(<!-- bench:(\w+) -->\n).*?(<!-- /bench:\2 -->)", re.DOTALL)


def side_block(result):
    checkpoint = result["benchmarks"]["checkpoint"]
    return (tables.as_markdown(tables.side_head(checkpoint), tables.side_rows(result))
            + "\n" + machine.sentence(result["machine"], checkpoint) + "\n")


def measured_block(result):
    benchmarks = result["benchmarks"]
    checkpoint = benchmarks["checkpoint"]
    parts = [machine.sentence(result["machine"], checkpoint) + f" {tables.shape_of(checkpoint)}.\n",
             tables.as_markdown(tables.CLAIMS_HEAD, tables.claim_rows(benchmarks))]
    if pattern := benchmarks.get("write_pattern"):
        parts += [f"Write pattern, {pattern['processes']} processes, {pattern['writes']} writes, "
                  f"{pattern['bytes'] / 1e6:.0f} MB:\n",
                  tables.as_markdown(tables.PATTERN_HEAD, tables.pattern_rows(pattern))]
    if overhead := benchmarks.get("overhead"):
        parts.append(tables.as_markdown(tables.PARTS_HEAD, tables.part_rows(overhead)))
    if result["peers"]:
        parts.append(tables.as_markdown(("peer", "in this run"), tables.peer_rows(result["peers"])))
    return "\n".join(parts)


def join_block(result):
    join = result["benchmarks"]["join"]
    facts = join.get("machine",
                     result["machine"])  # where it was measured at another time than the rest
    return (tables.as_markdown(tables.JOIN_HEAD, tables.join_rows(join)) +
            f"\n{facts['date']}, commit {facts['commit']}, {facts['cores']} cores; medians of "
            f"{join['repetitions']}.\n")


BLOCKS = {"side": side_block, "measured": measured_block, "join": join_block}


def rendered(text, result):
    """`text` with every block between markers replaced. Raises KeyError for an unknown block."""
    return BLOCK.sub(lambda found: found[1] + BLOCKS[found[2]](result) + found[3], text)


def write(root, result):
    """Keeps the result as the reference and puts its figures into the documents."""
    (root / REFERENCE).write_text(json.dumps(result, indent=1) + "\n")
    for name in DOCUMENTS:
        path = root / name
        path.write_text(rendered(path.read_text(), result))
