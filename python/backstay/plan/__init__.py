"""The planner: published models of checkpointing as vectorised functions, with units in their names.

interval, wall_clock   how often to save, expected time        docs/plan/interval.md
latency, model         how long a checkpoint takes, machines   docs/plan/latency.md
fill_time              a full dump from four numbers           docs/plan/fill-time.md
strategy               who writes                              docs/plan/strategy.md
aggregation            disk requests with a buffer pool        docs/plan/aggregation.md
multilevel             intervals of several levels             docs/plan/multilevel.md
cost                   local disks or shared storage           docs/plan/cost.md
levels                 three levels on a machine               docs/plan/advise.md
protection             chance of a restart after losses        docs/plan/survival.md

Every argument may be a number or an array; arrays are broadcast. Wrong values raise PlanError, which names
the argument. Only numpy and the standard library are imported; nothing is imported before it is used.
"""
