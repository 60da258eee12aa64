"""The tables of one result: the same rows for the terminal and for the documents.

A result is {"machine": facts, "benchmarks": {name: JSON of the program}, "peers": {name: JSON}}.
"""

MIB = 1 << 20
CLAIMS = {  # key of a ratio -> how it reads
    "blocked_over_memcpy": "blocked / memcpy",
    "local_over_raw_write": "*local* / raw write",
    "restart_pool_over_memcpy": "restart from the pool / memcpy",
    "restart_cold_over_raw_read": "cold restart / raw read",
    "tcp_over_stream": "bulk data over TCP / plain stream",
    "ucx_over_stream": "bulk data by UCX over TCP / plain stream",
    "steps_with_due_over_without": "steps with `due` / without",
    "encode_3_1_over_isal": "parity (3, 1): encode / ISA-L alone",
    "encode_2_2_over_isal": "parity (2, 2): encode / ISA-L alone",
    "encode_8_2_over_isal": "parity (8, 2): encode / ISA-L alone",
    "stopped_over_memcpy": "an unmodified process stands still to be copied / memcpy",
    "restart_over_memcpy": "an unmodified process out of the pool / memcpy",
    "image_local_over_raw_write": "*local* of an unmodified process / raw write",
    "image_cold_over_raw_read": "cold restart of an unmodified process / raw read",
    "image_cold_over_read_new": "the same / raw read into memory that nobody has touched",
    "kept_over_full_stopped": "stands still where 5 % of its memory changed / for all of it",
    "kept_over_full_bytes": "bytes of a version where 5 % changed / of a full one",
    "snapshot_over_fork": "stands still for a snapshot / its bare fork",
    "preload_over_pool": "write pattern, captured by the library / regions through the pool",
    "mount_over_pool": "write pattern, captured by a mount / regions through the pool",
} | {
    f"{way}_over_tmpfs_{kib}k_x{processes}":
        f"captured writes of {kib} KiB, {processes} at once{by} / into tmpfs"
    for way, by in (("preload", ""), ("pool", ", through the pool"), ("mount", ", by a mount"))
    for processes in (1, 4) for kib in (4, 128, 1024)
} | {
    f"{key}_{kib}k_x{processes}": f"{what}, written in {kib} KiB, {processes} at once"
    for key, what in (("read_over_memcpy", "a captured file read back / memcpy"),
                      ("local_over_native", "`fsync` of a captured file / natively"))
    for processes in (1, 4) for kib in (4, 128, 1024)
}
CLAIMS_HEAD = ("claim", "ours s", "limit s", "ratio", "target", "")
PATTERN_HEAD = ("way", "blocked s", "on disk s", "speed-up", "memory MiB", "write requests")
PARTS_HEAD = ("part", "ns")
JOIN_HEAD = ("agents", "all have joined after", "next barrier", "connections, at most")


def seconds(value):
    return f"{value:.4f}" if value < 10 else f"{value:.1f}"


def short_seconds(value):
    return f"{value:.3f} s" if value < 0.1 else f"{value:.2f} s"


def shape_of(checkpoint):
    return f"{checkpoint['ranks']} × {checkpoint['mib']} MiB"


def claim_name(key):
    if key in CLAIMS:
        return CLAIMS[key]
    ours, limit = key.removeprefix("blocked_").split("_over_")  # two shapes: 64x16, 4x256
    return f"blocked, {ours.replace('x', ' × ')} MiB / {limit.replace('x', ' × ')} MiB"


def verdict(reached, value, target):
    return "reached" if reached else f"missed by {100 * (value / target - 1):.1f} %"


def claim_rows(benchmarks):
    for result in benchmarks.values():
        for key, ratio in result.get("ratios", {}).items():
            yield (claim_name(key), seconds(ratio["ours"]), seconds(ratio["limit"]),
                   f"{ratio['value']:.2f}", f"{ratio['target']:g}",
                   verdict(ratio["reached"], ratio["value"], ratio["target"]))
    if "checkpoint" in benchmarks:
        agent = benchmarks["checkpoint"]["agent"]
        used, limit = agent["resident_bytes_max"], agent["limit_bytes"]
        yield ("agent's resident memory / (pool + 64 MiB)", f"{used / MIB:.0f} MiB",
               f"{limit / MIB:.0f} MiB", f"{used / limit:.2f}", "1",
               verdict(agent["reached"], used / limit, 1))


def pattern_rows(pattern):
    for name, way in pattern["ways"].items():
        yield (name, seconds(way["blocked_s"]), seconds(way["on_disk_s"]), f"{way['speedup']:.1f}",
               f"{way['memory_bytes'] / MIB:.0f}", f"{way['write_requests']:.0f}")


def part_rows(overhead):
    for key, value in overhead.items():
        if key.endswith("_ns"):
            yield (key.removesuffix("_ns").replace("_", " "), f"{value:,.1f}")


def join_rows(join):
    """Agents as processes of this machine."""
    for shape in ("tree", "star"):
        what = f"{join['agents']}, a tree of {join['arity']}" if shape == "tree" else f"{join['agents']}, a star"
        yield (what, *(short_seconds(join[f"{shape}_{key}_s"]) for key in ("join", "barrier")),
               f"{join[f'{shape}_connections_max']:.0f}")


def side_head(checkpoint):
    return (shape_of(checkpoint), "program waits", "on the disk after", "restart from memory",
            "restart from the disk")


def side_rows(result):
    """Raw copies, Backstay and the peers of the run beside each other."""
    run = result["benchmarks"]["checkpoint"]
    yield ("plain memcpy; raw O_DIRECT write of a new file, raw read",
           *map(short_seconds,
                (run["memcpy_s"], run["raw_write_s"], run["memcpy_s"], run["raw_read_s"])))
    yield ("Backstay, checksums on",
           *map(short_seconds, (run["blocked_s"], run["local_s"], run["restart_pool_s"],
                                run["restart_cold_s"])))
    for peer in result["peers"].values():
        if "blocked_s" in peer:
            yield (peer["what"], *(short_seconds(peer[key]) if key in peer else ""
                                   for key in ("blocked_s", "local_s", "restart_memory_s",
                                               "restart_disk_s")))


def peer_rows(peers):
    for name, peer in peers.items():
        yield (name, peer.get("state", "measured"))


def as_text(head, rows):
    rows = [head, *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def as_markdown(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
