"""A cluster of hosts on one machine, made of namespaces. tests/cluster/README.md says how it is
used.
"""
