"""Medians and ratios, in the form of bench/harness/samples.h."""

import statistics


def median(values):
    return statistics.median(values)


class Samples:
    """Values by key, in the order of the measurements."""

    def __init__(self):
        self.values = {}

    def add(self, key, value):
        self.values.setdefault(key, []).append(value)

    def median(self, key):
        return median(self.values[key])

    def write_to(self, result):
        result.update({key: self.median(key) for key in self.values})
        result["samples"] = self.values


def ratio(ours, limit, target, at_least=False):
    """What is claimed: ours / limit is at most the target, or at least."""
    value = ours / limit
    return {"ours": ours, "limit": limit, "value": value, "target": target, "at_least": at_least,
            "reached": value >= target if at_least else value <= target}
