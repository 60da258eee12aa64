"""What a machine must have: said before anything is made, with what to do about it."""

import os
import shutil
import subprocess

from .errors import MissingFeature

# program -> Debian package
TOOLS = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux", "nsenter": "util-linux",
         "losetup": "util-linux",
         "mount": "mount", "mkfs.ext4": "e2fsprogs"}
SLURM_TOOLS = {"slurmctld": "slurmctld", "slurmd": "slurmd", "srun": "slurm-client",
               "sinfo": "slurm-client",
               "munged": "munge", "mungekey": "munge", "pkill": "procps"}
MPI_TOOLS = {"mpich": ("mpirun.mpich", "mpich"), "openmpi": ("mpirun.openmpi", "openmpi-bin")}
# what unshare is asked for -> the option of the kernel
NAMESPACES = {"--net": "CONFIG_NET_NS", "--pid": "CONFIG_PID_NS", "--uts": "CONFIG_UTS_NS",
              "--ipc": "CONFIG_IPC_NS",
              "--mount": "namespaces of mounts"}


def system_path():
    """The path of the caller with the folders of administration, which a user's often lacks."""
    return os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"


def require_tools(tools):
    missing = sorted({package for program,
                      package in tools.items() if not shutil.which(program, path=system_path())})
    if missing:
        raise MissingFeature(f"these Debian packages are missing: {' '.join(missing)}\n"
                             f"  install them with scripts/setup test, or: apt-get install "
                             f"{' '.join(missing)}")


def require_root():
    if os.geteuid() != 0:
        raise MissingFeature("a cluster needs root (namespaces, mounts, network): run it with sudo")


def require_namespaces():
    if try_unshare(*NAMESPACES):
        return
    for option, feature in NAMESPACES.items():
        if not try_unshare(option):
            raise MissingFeature(f"this kernel or container refuses 'unshare {option}' "
                                 f"({feature}).\n"
                                 "  In a container, start it with --privileged")


def try_unshare(*options):
    return subprocess.run(["unshare", *options, "--fork", "true"],
                          capture_output=True).returncode == 0


def require_links():
    """A bridge, a veth pair and a shaper can be made (in a network namespace that goes at once)."""
    script = ("ip link add probe0 type bridge && ip link add probe1 type veth peer name probe2 && "
              "tc qdisc add dev probe1 root tbf rate 1gbit burst 1m latency 50ms")
    made = subprocess.run(["unshare", "--net", "sh", "-c", script], capture_output=True, text=True)
    if made.returncode != 0:
        raise MissingFeature("this kernel cannot make bridge, veth or the tbf queue "
                             f"(modules bridge, veth, sch_tbf): {made.stderr.strip()}")


def require_cluster():
    require_root()
    require_tools(TOOLS)
    require_namespaces()
    require_links()
