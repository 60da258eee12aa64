"""Command lines of the two launchers. They start their daemons on the hosts through nslaunch, as
they would by ssh.
"""

from pathlib import Path

from . import checks

LAUNCHER = Path(__file__).resolve().parents[1] / "nslaunch"
IMPLEMENTATIONS = tuple(checks.MPI_TOOLS)


def command(implementation, ranks, hosts, program):
    return {"mpich": mpich, "openmpi": openmpi}[implementation](ranks, hosts, program)


def mpich(ranks, hosts, program):
    return ["mpirun.mpich", "-launcher", "ssh", "-launcher-exec", str(LAUNCHER), "-iface", "eth0",
            "-hosts", ",".join(hosts), "-n", str(ranks), *program]


def openmpi(ranks, hosts, program):
    """Ranks go to the hosts in turn, as with MPICH, and are not bound: all hosts have the same
    processors.
    """
    return ["mpirun.openmpi", "--allow-run-as-root", "--mca", "plm_rsh_agent", str(LAUNCHER),
            "--mca", "pml", "ob1", "--mca", "btl", "tcp,vader,self",
            "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0",
            "--map-by", "node", "--oversubscribe", "--bind-to", "none",
            "-host", ",".join(hosts), "-n", str(ranks), *program]
