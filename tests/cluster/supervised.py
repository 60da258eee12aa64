"""`backstay run` on the hosts of a cluster: what its tests share.

The job prints a result that depends on every step of every rank; each test compares it with that of
an undisturbed run.
"""

import itertools
import os
import re
import shlex

from conftest import finish
from minicluster.mpi import LAUNCHER

BACKSTAY = os.environ.get("BACKSTAY_TEST_COMMAND", "")
JOBS = {name: os.environ.get(f"BACKSTAY_TEST_JOB_{name.upper()}", "") for name
        in ("openmpi", "mpich")}
LAUNCHERS = {
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--mca", "plm_rsh_agent", str(LAUNCHER),
                "--mca", "pml", "ob1",
                "--mca", "btl", "tcp,vader,self", "--mca", "btl_tcp_if_include", "eth0",
                "--mca", "oob_tcp_if_include", "eth0", "--map-by", "node", "--bind-to", "none"],
    "mpich": ["mpirun.mpich", "-launcher", "ssh", "-launcher-exec", str(LAUNCHER), "-iface",
              "eth0"]}
SETTINGS = {"BACKSTAY_AGENT_PROGRAM": os.environ.get("BACKSTAY_TEST_AGENT", ""),
            "BACKSTAY_AGENT_IDLE_EXIT_S": "60",
            "BACKSTAY_POOL_SIZE_MIB": "32", "BACKSTAY_POOL_BUFFER_MIB": "1",
            "BACKSTAY_CHECKPOINT_POLICY": "request",
            "BACKSTAY_NETWORK_HEARTBEAT_S": "0.1", "BACKSTAY_NETWORK_DEAD_AFTER_S": "3"}
SILENT_S = 8  # a busy machine starts a remote shell late
names = (f"run{number}" for number in itertools.count())


class Supervised:
    """One job; each start() is `backstay run` on a host."""

    def __init__(self, mini, kind="openmpi"):
        self.mini = mini
        self.kind = kind
        self.job = next(names)

    def start(self, options, launcher_options, program_options, on="n0"):
        settings = [f"{name}={value}" for name, value in SETTINGS.items()]
        return self.mini.start("exec", on, "--", "env", *settings, BACKSTAY, "run", "--job",
                               self.job,
                               "--host-timeout", SILENT_S, *shlex.split(options), "--",
                               *LAUNCHERS[self.kind],
                               *shlex.split(launcher_options), JOBS[self.kind],
                               *shlex.split(program_options))

    def run(self, *words, **more):
        """(exit status, output)."""
        return finish(self.start(*words, **more))


def result(output):
    found = re.search(r"^result .*$", output, re.MULTILINE)
    assert found, output
    return found.group()
