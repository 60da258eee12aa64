"""Failure logs: readers of several formats, one log. docs/plan/replay.md.

log          what every reader gives: outages of nodes, in seconds from the first
text         a file's text (also compressed), its lines and dates; errors that name line and column
lanl, infinitehbd, slurm, plain    the formats; read() finds out which it is (read.py)
statistics   incidents, mean time to interrupt, spread, Weibull's law

Only numpy and the standard library are needed.
"""
