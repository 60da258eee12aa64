"""Benchmarks over the hosts of a cluster on this machine (tests/cluster): what bench/cluster and
bench/storage_strategies share.
"""
