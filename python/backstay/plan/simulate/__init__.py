"""Jobs played through event by event, many at once, to hold the closed models against.
docs/plan/validate.md.

job         a run: computing, checkpoints at several levels, failures, restarts, waiting for repairs
schedule    what the job does when, and how far it gets in a given time
failures    exponential and Weibull failures, losses of several nodes at once, failures of a log
repair      lost nodes that come back, and spares
staging     memory that fills at network speed and drains at storage speed
validate    every closed model beside its simulation

Times in s, sizes in B, bandwidths in B/s. Only numpy is needed. The same seed gives the same
answer.
"""
