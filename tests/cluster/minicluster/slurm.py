"""A real Slurm: munged and slurmd on every host, slurmctld on the first one. Its files lie in the
cluster's folder.
"""

import shlex
import subprocess

from . import hosts, remote, state, waiting
from .errors import ClusterError

# What each line is for: no control groups (all hosts share the machine's), processes found through
# /proc, memory and processors as configured (hosts share the machine's too), a node that comes back
# is used again. A requeued job waits for its credential to expire: 5 s instead of 2 minutes. Jobs
# that say --oversubscribe share nodes.
SLURM_CONF = """
ClusterName=mini
SlurmctldHost=n0
SlurmUser=root
AuthType=auth/munge
AuthInfo=cred_expire=5
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/linear
TopologyPlugin=topology/{topology}
MpiDefault=none
StateSaveLocation={folder}/state
SlurmdSpoolDir=/run/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%h.log
SlurmdParameters=config_overrides
SlurmdTimeout={silence_s}
SlurmctldTimeout=30
KillWait=5
MinJobAge=300
ReturnToService=2
JobRequeue=1
SchedulerParameters=batch_sched_delay=0,sched_interval=2
NodeName={nodes} CPUs=2 RealMemory=1000 State=UNKNOWN
PartitionName=mini Nodes={nodes} Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES:8
"""
CGROUP_CONF = "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\nIgnoreSystemd=yes\nConstrainCores=no\nConstrainRAMSpace=no\n"
MUNGED = ("mkdir -p /run/munge && munged --force --key-file={folder}/munge.key "
          "--socket=/run/munge/munge.socket.2 "
          "--pid-file=/run/munge/munged.pid --seed-file=/run/munge/seed "
          "--log-file={folder}/munged-{host}.log")
DAEMONS = "slurmctld|slurmd|slurmstepd|munged"


def configuration(paths):
    return paths.slurm / "slurm.conf"


def environment(paths):
    """What the commands of Slurm need to find this cluster; set in every command that runs on a
    host.
    """
    return {"SLURM_CONF": str(configuration(paths))}


def up(paths, record, silence_s, switches=1):
    """Starts what does not run yet, on the hosts that are up; returns when all of these are ready
    for jobs.
    """
    if not hosts.is_up(paths, "n0"):
        raise ClusterError("slurmctld lives on n0, which is down; start it again with: mini boot n0")
    write_files(paths, record, silence_s, min(switches, record["hosts"]))
    living = [host for host in hosts.names(record["hosts"]) if hosts.is_up(paths, host)]
    for host in living:
        start_daemon(paths, host, "munged", MUNGED.format(folder=paths.slurm, host=host))
    start_daemon(paths, "n0", "slurmctld", "slurmctld")
    for host in living:
        start_daemon(paths, host, "slurmd", f"slurmd -N {host}")
    waiting.until(lambda: ready(paths) >= set(living),
                  f"the nodes of Slurm to be ready (logs: {paths.slurm})")


def write_files(paths, record, silence_s, switches):
    (paths.slurm / "state").mkdir(parents=True, exist_ok=True)
    key = paths.slurm / "munge.key"
    if not key.exists():
        subprocess.run(["mungekey", "--create", f"--keyfile={key}"], check=True)
    nodes = f"n[0-{record['hosts'] - 1}]"
    state.replace_text(configuration(paths), SLURM_CONF.format(
        folder=paths.slurm, nodes=nodes, silence_s=silence_s,
        topology="tree" if switches > 1 else "none"))
    if switches > 1:
        state.replace_text(paths.slurm / "topology.conf",
                           topology(hosts.names(record["hosts"]), switches))
    state.replace_text(paths.slurm / "cgroup.conf", CGROUP_CONF)


def topology(names, switches):
    """Hosts in turn on switches s0, s1, ..., so that those beside each other do not fail together;
    one above them.
    """
    lines = [f"SwitchName=s{switch} Nodes={','.join(names[switch::switches])}" for switch
             in range(switches)]
    return "\n".join([*lines, f"SwitchName=top Switches=s[0-{switches - 1}]"]) + "\n"


def start_daemon(paths, host, name, command):
    variables = shlex.join(f"{key}={value}" for key, value in environment(paths).items())
    script = f"pgrep -x {name} >/dev/null || {{ export {variables}; {command}; }} </dev/null >>{paths.slurm}/log 2>&1"
    status, _ = remote.output(paths.server(host), ["sh", "-c", script])
    if status != 0:
        raise ClusterError(f"{name} does not start on {host}: "
                           f"{(paths.slurm / 'log').read_text()[-1000:].strip()}")


def ready(paths):
    """Nodes that would take a job now."""
    _, text = remote.output(paths.server("n0"), ["sinfo", "-h", "-N", "-o", "%N %T"],
                            {**remote.login_environment(), **environment(paths)})
    pairs = [line.split() for line in text.splitlines()]
    return {pair[0] for pair in pairs if len(pair) == 2 and pair[1]
            in ("idle", "mixed", "allocated")}


def is_up(paths):
    if not configuration(paths).exists() or not hosts.is_up(paths, "n0"):
        return False
    return remote.output(paths.server("n0"), ["pgrep", "-x", "slurmctld"])[0] == 0


def down(paths, record):
    """Ends Slurm's processes: pkill sees those of its own host only."""
    for host in hosts.names(record["hosts"]):
        if hosts.is_up(paths, host):
            remote.output(paths.server(host), ["sh", "-c", f"pkill -KILL -x '{DAEMONS}'"])
