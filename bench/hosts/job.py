"""One job of the benchmark's program (program.c) over hosts of a cluster, and its rounds."""

import itertools
import json

from .mini import Failed

LOCAL, PROTECTED, DURABLE = 2, 3, 4
numbers = itertools.count()


def new_name():
    return f"bench{next(numbers)}"


def settings(build, name, pool_mib, more):
    """Environment of the ranks. Versions are few and large, so only the newest is kept."""
    values = {"JOB": name, "AGENT_PROGRAM": build / "src" / "bin" / "backstayd",
              "AGENT_IDLE_EXIT_S": 300,
              "POOL_SIZE_MIB": pool_mib, "STORAGE_KEEP": 1, "CHECKPOINT_POLICY": "request", **more}
    # All hosts share this machine's cores: a rank that waits must not keep one from the others.
    return ["OMPI_MCA_mpi_yield_when_idle=1",
            *(f"BACKSTAY_{key.upper()}={value}" for key, value in values.items())]


def run(cluster, build, hosts, name=None, ranks_per_host=1, pool_mib=512, set_to=None, **program):
    """The rounds that the program reports, as dictionaries. Raises Failed if it fails."""
    words = [f"{key}={value}" for key, value in program.items()]
    output = cluster("mpirun", "--mpi", "openmpi", "-n", ranks_per_host * len(hosts), "--hosts",
                     ",".join(hosts), "--",
                     "env", *settings(build, name or new_name(), pool_mib, set_to or {}),
                     build / "bench" / "hosts_program", *words)
    rounds = [json.loads(line.removeprefix("round ")) for line in output.splitlines()
              if line.startswith("round {")]
    if not rounds:
        raise Failed(f"the program said nothing of its rounds:\n{output}\n{cluster.logs()}")
    return rounds

