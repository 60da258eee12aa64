"""Unmodified MPI programs over the hosts of a cluster: natively, and under `backstay run
--transparent`. Under Open MPI: MPICH 4.0.2 hangs in MPI_Finalize over hosts, also by itself.
"""

import itertools
import json
import pathlib
import re
import time

from minicluster.mpi import LAUNCHER

from .mini import Failed

SHARED = "/mnt/shared"
VERSIONS = "/var/tmp/backstay-bench"
NEVER = "100000"  # seconds: no checkpoint comes
HPCC_INPUT = pathlib.Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")
MPIRUN = ["mpirun.openmpi", "--allow-run-as-root", "--mca", "plm_rsh_agent", str(LAUNCHER),
          "--mca", "pml", "ob1", "--mca", "btl", "tcp,vader,self",
          "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0",
          "--mca", "mpi_yield_when_idle", "1", "--map-by", "node", "--bind-to", "none",
          "--oversubscribe"]
numbers = itertools.count()


def new_folder(cluster, host):
    """That all hosts see."""
    folder = f"{SHARED}/unchanged{next(numbers)}"
    cluster.on(host, f"mkdir {folder}")
    return folder


def hpcc(cluster, host, ranks, size):
    """Makes the folder of an hpcc run; returns it and the words that start it. The grid of
    processes is as square as the number of ranks allows."""
    rows = max(one for one in range(1, int(ranks ** 0.5) + 1) if ranks % one == 0)
    text = HPCC_INPUT.read_text()
    for name, value in (("Ps", rows), ("Qs", ranks // rows), ("Ns", size)):
        text = re.sub(rf"^\d+( +{name})$", rf"{value}\1", text, flags=re.MULTILINE)
    folder = new_folder(cluster, host)
    cluster.on(host, f"cat >{folder}/hpccinf.txt <<'END'\n{text}END")
    return folder, ["hpcc"]


class Run:
    """One run of a program: its seconds, and the lines of all hosts' event logs."""

    def __init__(self, seconds, events):
        self.seconds, self.events = seconds, events

    def named(self, event):
        return [one for one in self.events if one["event"] == event]


def run(cluster, build, hosts, ranks, folder, words, interval=None, set_to=None, kills=False):
    """`interval`: seconds between checkpoints; None: natively. `kills`: a rank of the last host,
    once two versions are on its disk. Raises Failed if the program fails.
    """
    per_host = -(-ranks // len(hosts))
    launch = [*MPIRUN, "-n", ranks, "--host", ",".join(f"{host}:{per_host}" for host in hosts),
              *words]
    job = f"unchanged{next(numbers)}"
    if interval is not None:
        launch = [build / "src" / "bin" / "backstay", "run", "--transparent", "--fresh", "--job",
                  job, "--interval", interval, "--retries", 1 if kills else 0, "--", *launch]
    values = {"DIR": VERSIONS, "AGENT_PROGRAM": build / "src" / "bin" / "backstayd",
              "AGENT_IDLE_EXIT_S": 300, "POOL_SIZE_MIB": 256, "STORAGE_KEEP": 1, **(set_to or {})}
    settings = [f"BACKSTAY_{key.upper()}={value}" for key, value in values.items()]
    begin = time.monotonic()
    running = cluster.start("exec", hosts[0], "--", "env", "-C", folder, *settings, *launch)
    if kills:
        kill_a_rank(cluster, hosts[-1], job)
    cluster.finish(running, deadline_s=600)
    seconds = time.monotonic() - begin
    return Run(seconds, events_of(cluster, hosts, job) if interval is not None else [])


def kill_a_rank(cluster, host, job):
    """The program of a rank, which the boot program has become: a companion's child."""
    log = f"{VERSIONS}/{job}/events.jsonl"
    cluster.on(host, f"""
      for try in $(seq 6000); do
        [ "$(grep -c '"event":"local"' {log} 2>/dev/null || true)" -ge 2 ] && break
        grep -q '"event":"run_end"' {log} 2>/dev/null && exit 0
        sleep 0.02
      done
      pkill -KILL -P "$(pgrep -n -f '[/]backstay-companion ')" || true""")


def events_of(cluster, hosts, job):
    lines = []
    for host in hosts:
        lines += cluster.on(host, f"cat {VERSIONS}/{job}/events.jsonl 2>/dev/null || true"
                            ).splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
    if not found:
        raise Failed(f"{job}: no host has an event log")
    return found


def forget(cluster, hosts):
    cluster.stop_agents(hosts)
    cluster.on_all(hosts, f"rm -rf {VERSIONS}")
