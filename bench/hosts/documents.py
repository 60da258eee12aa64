"""Keeps results of several hosts in a file beside the reference of one host, and puts their tables
into docs/benchmarks.md.
"""

import json
import re

import tables

from .mini import ROOT

REFERENCE = "bench/results/hosts.json"
PAGE = "docs/benchmarks.md"


def sentence(result):
    """One line on where and how it was measured."""
    facts, shape = result["machine"], result["shape"]
    settings = "".join(f", {key.replace('_', '.', 1)} = {value}" for key,
                       value in shape["set"].items())
    return (f"{facts['date']}, commit {facts['commit']}: {shape['host_count']} hosts on one "
            f"machine ({facts['cores']} cores of "
            f"{'a virtual machine, ' if facts['virtual'] else ''}{facts['cpu']}, "
            f"{facts['memory_gib']:.0f} GiB), each link limited to "
            f"{shape['rate']}, the shared directory to {shape['shared_mb_s']} MB/s{settings}; load "
            f"{facts['load_average']:.1f} "
            f"before the run; medians of {shape['repetitions']}.")


def load():
    path = ROOT / REFERENCE
    return json.loads(path.read_text()) if path.exists() else {}


def block(name, parts, kept):
    """The text between the markers of a benchmark: parts that were measured in one run share a
    sentence.
    """
    lines, last = [], None
    for part_name, part in parts.items():
        if part_name not in kept.get(name, {}):
            continue
        result = kept[name][part_name]
        told = f"{sentence(result)[:-1]}; {result[part_name]['bytes_per_node'] >> 20} MiB a node.\n"
        if told != last:
            lines.append(told)
            last = told
        lines.append(tables.as_markdown(part.HEAD, list(part.rows(result[part_name]))))
    return "\n".join(lines)


def rendered(text, name, parts, kept):
    pattern = re.compile(rf"(<!-- hosts:{name} -->\n).*?(<!-- /hosts:{name} -->)", re.DOTALL)
    return pattern.sub(lambda found: found[1] + block(name, parts, kept) + found[2], text)


def keep(name, result, parts):
    """Each part that ran replaces the one kept before."""
    kept = load()
    common = {key: value for key, value in result.items() if key not in parts}
    for part in parts:
        if part in result:
            kept.setdefault(name, {})[part] = {**common, part: result[part]}
    (ROOT / REFERENCE).write_text(json.dumps(kept, indent=1) + "\n")
    page = ROOT / PAGE
    page.write_text(rendered(page.read_text(), name, parts, kept))
