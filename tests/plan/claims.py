"""What the papers claim and what their equations give: the rows of docs/plan/claims.md.

`python tests/plan/claims.py --write` writes the table into the page; test_claims.py compares.
"""

import pathlib
import sys

import numpy as np
from backstay.plan import aggregation, cost, fill_time, model, strategy, survival, systems, wall_clock

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "plan" / "claims.md"
BEGIN, END = "<!-- the table is written by tests/plan/claims.py -->", "<!-- end of the table -->"
MACHINES = ("red-storm", "bluegene-l", "jaguar", "petaflop")
POWERS = 2 ** np.arange(18)
KNOWN = systems.systems()


def percent(value) -> str:
    return f"{100 * value:.3g} %"


def each(points, name="overhead_fraction", form=percent) -> str:
    return ", ".join(f"{machine} {form(getattr(point, name))}" for machine,
                     point in zip(MACHINES, points, strict=True))


def at(processors, method="pfs", memory=None):
    found = []
    for machine in MACHINES:
        staging = None if memory is None else memory * KNOWN[machine].memory_per_processor_bytes
        found.append(model.checkpoint(KNOWN[machine], processors, method,
                                      staging if method == "overlay" else None))
    return found


def exhausted(memory) -> list[int]:
    """Processors, by machine, from which a checkpoint no longer fits; `memory` in units of a
    processor's.
    """
    found = []
    for point in at(np.arange(1, 32769), "overlay", memory):
        found.append(int(np.argmax(point.limit == "staging memory")) + 1)
    return found


def storage_bound() -> str:
    first = [int(np.argmax(point.limit == "storage")) + 1 for point in at(np.arange(1, 4097))]
    return ", ".join(f"{m} from {n}" for m, n in zip(MACHINES, first, strict=True))


def paper_000():
    yield ("000 § 3.4",
           "above 32 processors a checkpoint is bound by storage, never by the bisection",
           f"true: storage-bound {storage_bound()} processors; the bisection never limits")
    yield ("000 § 3.4",
           "on 64K processors no better than 70 % efficiency, even on the petaflop machine",
           f"time spent saving: {each(at(65536))}. The share of computing is above 70 % on "
           f"bluegene-l and petaflop before rework and restarts; "
           f"with rework (eq. 3.1, R = 0) it is {each(efficiencies(65536), 'efficiency')}")
    yield ("000 § 6.1.1", "below 16K processors the overhead is under 10 %",
           f"at 16 384: {each(at(16384))}; jaguar is above")
    yield ("000 § 6.1.1", "beyond 64K processors over 50 % on some systems",
           f"true at 131 072: {each(at(131072))}")
    yield ("000 § 4.3", "below 8K processors LWFS+overlay costs less than 1 %",
           f"true up to 4 096: {each(at(4096, 'overlay'))}; at 8 191 with the memory of the text: "
           f"{each(at(8191, 'overlay'))}; "
           f"with twice that memory: {each(at(8191, 'overlay', 4096))}")
    yield ("000 § 4.3",
           "at 16K processors the overlay's memory is exhausted (1 024 staging processors of 2 × "
           "d_max)",
           "exhausted from " + ", ".join(f"{m} {n}" for m,
                                         n in zip(MACHINES, exhausted(2048), strict=True))
                                         + " processors, about 4K")
    yield ("000 § 6.1.1",
           "the same, if 1 024 staging *nodes* of twice a dual-processor node's memory are meant",
           "exhausted from " + ", ".join(f"{m} {n}" for m,
                                         n in zip(MACHINES, exhausted(4096), strict=True))
                                         + " processors, about 8K")
    yield ("000 § 4.2", "cheaper checkpoints make the best interval shorter",
           "true. Red Storm, 4 096 processors: "
           + ", ".join(f"{m} "
                       f"{float(model.checkpoint(KNOWN['red-storm'], 4096, m).daly_interval_s):.0f} s" for m in model.METHODS)
           + " by Daly; eq. 4.2 lets the overlay save no more often than every "
           + f"{float(model.checkpoint(KNOWN['red-storm'], 4096, 'overlay').interval_floor_s):.0f} "
             f"s")


class _Efficiency:
    def __init__(self, efficiency):
        self.efficiency = efficiency


def efficiencies(processors):
    found = []
    for point in at(processors):
        parts = wall_clock.split(point.interval_s, point.latency_s, point.mtti_s, 1e9)
        found.append(_Efficiency(float(parts.efficiency)))
    return found


TABLE_I = {"stampede": 6.7, "jaguar-2009": 9.4, "titan": 11.0, "taihulight": 25.0, "ccr-ub": 2.3,
           "ssd-node": 4.3, "exascale-ssd": 1.6}
TABLE_II = ((8192, 136.1, 9.4e12), (16368, 367.4, 19e12), (24000, 634.8, 29e12),
            (32752, 652.8, 38e12))


def ideal_min(name) -> float:
    one = KNOWN[name]
    return fill_time.ideal_checkpoint_s(one.ram_bytes, one.storage_bytes, one.device_bytes,
                                        one.device_bytes_per_s) / 60


def paper_001():
    rows = ", ".join(f"{name} {ideal_min(name):.3g} ({paper:g})" for name, paper in TABLE_I.items())
    yield ("001 Table I", "ideal checkpoint times, minutes",
           f"the law (the paper): {rows}. The paper rounds its ratios; its ssd-node row repeats "
           f"the fill time, 0.125 × 4.3 min is meant")
    one = KNOWN["stampede"]
    factors = [seconds / fill_time.ideal_checkpoint_s(one.ram_bytes, one.storage_bytes,
                                                      one.device_bytes, one.device_bytes_per_s,
                                                      saved)
               for _, seconds, saved in TABLE_II]
    yield ("001 § IV-B", "HPCG takes about ten times the ideal time",
           "Table II: " + ", ".join(f"{f:.1f} × on {n} cores" for (n, _, _),
                                    f in zip(TABLE_II, factors, strict=True)))
    yield ("001 § IV-B", "32 752 cores hold 19.2 % of the RAM, ideal time 1.29 min",
           f"38 TB are {percent(38e12 / one.ram_bytes)} of 205 TB, "
           f"{38e12 / one.ram_bytes * ideal_min('stampede'):.3g} min")


def paper_002():
    from test_survival import TABLE_2, targets

    differences = [survival.allowed_failures(n, r, p) - paper for n, r, p, paper in targets()]
    exact = differences.count(0)
    yield ("002 Table 2", f"{12 * len(TABLE_2)} numbers of allowed failures",
           f"{exact} of {len(differences)} alike, the others off by "
           + ", ".join(f"{d:+d} ({differences.count(d)})" for d in sorted(set(differences) - {0})))
    share = {r: survival.allowed_failures(2048, r, 0.999) for r in (4, 5, 6)}
    yield ("002 § 5.4",
           "2 048 nodes, 99.9 %: 4 replicas stand 112 losses (5.5 %), 5 stand 9.1 %, 6 stand 12.6 %",
           ", ".join(f"{r} replicas {f} ({percent(f / 2048)})" for r, f in share.items()))


def paper_002_prices():
    known = cost.prices()
    disks = {name: known[f"sata-{name}-raid1"] for name in ("500gb", "1tb")}
    price = {name: cost.local_cost(1000, one.disk_price, one.disks_per_node, one.controller_price)
             for name, one in disks.items()}
    systems_price = {name: cost.shared_cost(known[name].price) for name
                     in ("mid-range-san", "high-end-san")}
    shares = ", ".join(f"{d} / {s} {percent(price[d] / systems_price[s])}" for s in systems_price
                       for d in price)
    yield ("002 § 5.6", "local disks for 1 000 nodes cost only 25 to 58 % of the SAN",
           f"without energy: {shares}")
    room = {name: cost.local_bytes(1000, one.disks_per_node, one.disk_bytes, one.usable_fraction)
            for name, one in disks.items()}
    per_tb = price["500gb"] / (room["500gb"] / cost.stored_per_byte(2)) * 1e12
    yield ("002 § 5.6", "500 TB or 1 PB are usable, against 54 TB",
           f"{room['500gb'] / 1e12:.0f} TB and {room['1tb'] / 1e12:.0f} TB of disk; with two "
           f"replicas each checkpoint is stored three times, which leaves "
           f"{room['500gb'] / 3e12:.0f} and {room['1tb'] / 3e12:.0f} TB: {per_tb:.0f} dollars a TB "
           f"against {systems_price['mid-range-san'] / 54:.0f}")


def paper_003():
    profile = aggregation.PROFILES["lu.C.64"]
    shares = (profile.counts[1:], (profile.sizes * profile.counts)[1:], (65, 35))
    yield ("003 profile",
           "LU.C.64: 38 % of the writes take 65 % of the time for 20 % of the data, 0.8 % of them "
           "35 % for 79 %",
           f"a request costs {1000 * aggregation.request_s_from_shares(*shares, 60e6):.2f} ms "
           f"besides its bytes at 60 MB/s")
    plain, pooled = aggregation.without_pool(profile), aggregation.with_pool(profile)
    waits = aggregation.blocked_s(profile, 8, 64 * 2**20, 2e9, pooled)
    yield ("003 WAG-DBI",
           "a pool of 64 MB a node makes checkpoints faster and overlaps writing with computing "
           "(the charts are missing from the text)",
           f"{plain.requests:.0f} requests become {pooled.requests:.0f}; the disk is busy "
           f"{pooled.disk_s:.1f} s instead of {plain.disk_s:.1f} s, the program waits {waits:.1f} s")


# Cores, cycles, B/s, S.
TABLE_I_004 = ((16384, 10152, 251e12, 39e9), (32768, 11539, 442e12, 78e9),
               (65536, 9346, 1091e12, 156e9))
BLUE_GENE_HZ = 850e6  # public, not in the paper


def paper_004():
    yield ("004 eq. 1", "ratios above 1000 and under 20 with n_c = 20 give about 25 ×",
           f"{strategy.production_improvement(1000, 20, 20):.1f} ×")
    half = strategy.speedup_unblocked(65536, 1024, 2.0, 1.0)
    yield ("004 § V-C2",
           "with half the bandwidth of coIO the speed-up is still half of n_p/n_g, 30 ×",
           f"{half:.0f} × for 64 : 1")
    yield ("004 § V-C2", "BW_coIO / BW_p is about 10⁻⁶",
           ", ".join(f"{13e9 / rate:.1e}" for _, _, rate, _ in TABLE_I_004)
           + " with the 13 GB/s of the conclusion and Table I; the hand-over still does not "
             "matter: eq. 5 gives "
           + f"{strategy.speedup(65536, 1024, 156e9, 13e9, 13e9, 1091e12):.1f} ×, eq. 6 "
             f"{strategy.speedup_approximate(65536, 1024, 13e9, 13e9):.0f} ×")
    sent = [size / (rate * cycles / BLUE_GENE_HZ) for _, cycles, rate, size in TABLE_I_004]
    yield ("004 Table I", "perceived bandwidth = data of all workers / longest MPI_Isend",
           "the printed times (cycles of 850 MHz) and bandwidths belong to 1/"
           + ", 1/".join(f"{one:.1f}" for one in sent)
           + " of S: to one field of the file, it seems, not to the whole checkpoint")


def four_times_off() -> str:
    best = wall_clock.exact_s(300, 86400, 1e9)
    lost = [float(wall_clock.wall_clock_s(best * k, 300, 86400, 1e9) / 1e9 - 1) for k
            in (0.25, 1, 4)]
    return f"δ = 300 s, M = 1 day: lost {percent(lost[0])} at ¼, {percent(lost[1])} at the best, {percent(lost[2])} at 4 ×: {lost[0] / lost[1]:.2f} and {lost[2] / lost[1]:.2f} times"


def rows():
    for paper in (paper_000, paper_001, paper_002, paper_002_prices, paper_003, paper_004):
        yield from paper()
    yield ("(known rule)", "an interval four times off about doubles the lost time",
           four_times_off())


def table() -> str:
    lines = ["| where | the paper says | its equations give |", "|---|---|---|"]
    lines += [f"| {where} | {says} | {gives} |" for where, says, gives in rows()]
    return "\n".join(lines)


def page_with(text: str, new: str) -> str:
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{new}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), table()), encoding="utf-8")
    else:
        print(table())
