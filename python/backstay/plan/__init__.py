"""The planner: published models of checkpointing as vectorised functions, with units in their
names.

interval, wall_clock   how often to save, expected time        docs/plan/interval.md
latency, model         how long a checkpoint takes, machines   docs/plan/latency.md
fill_time              a full dump from four numbers           docs/plan/fill-time.md
strategy               who writes                              docs/plan/strategy.md
aggregation            disk requests with a buffer pool        docs/plan/aggregation.md
multilevel             intervals of several levels             docs/plan/multilevel.md
cost                   local disks or shared storage           docs/plan/cost.md
levels                 three levels on a machine               docs/plan/advise.md
protection             chance of a restart after losses        docs/plan/survival.md

Sizes, times, bandwidths and numbers of processors may be numbers or arrays, which are broadcast;
what describes a scheme of protection, a histogram or a schedule is a single number. Wrong values
raise PlanError, a ValueError that names the argument; arrays whose shapes do not fit together raise
numpy's ValueError. Only numpy and the standard library are imported; nothing is imported before it
is used.
"""
