"""A host: namespaces of its own for network, name, mounts, processes and System V memory, below the
cluster's.
"""

import shlex
from pathlib import Path

from . import disks, keeper, network, remote, state, waiting
from .errors import ClusterError

REPOSITORY = Path(__file__).resolve().parents[3]
PRIVATE = ("/tmp", "/run", "/mnt", "/dev/shm",
           "/var/tmp")  # what a host does not share with the machine

# Runs inside a new host. A repository that lies in a folder that becomes private stays visible.
# /sys is that of the host's network (UCX looks there for devices), with the machine's control
# groups (slurmd wants them).
MOUNTS = """
set -e
if [ -n "{visible}" ]; then mkdir -p {folder}/visible; mount --rbind {visible} {folder}/visible; fi
for folder in /tmp /run /mnt /dev/shm; do mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs $folder; done
chmod 755 /run /mnt
mkdir /mnt/local /mnt/shared /run/lock
if [ -d /sys/fs/cgroup ]; then mount --rbind /sys/fs/cgroup /mnt/local; fi
mount -t sysfs sysfs /sys
if mountpoint -q /mnt/local; then mount --move /mnt/local /sys/fs/cgroup; fi
mount --bind {shared} /mnt/shared
mount --bind {etc_hosts} /etc/hosts
if [ -n "{visible}" ]; then mkdir -p {visible}; mount --move {folder}/visible {visible}; fi
"""


def names(count):
    return [f"n{index}" for index in range(count)]


def index(record, host):
    """Number of a host; the error names those that exist."""
    known = names(record["hosts"])
    if host not in known:
        raise ClusterError(f"there is no host '{host}'; this cluster has {known[0]} .. {known[-1]}")
    return known.index(host)


def is_up(paths, host):
    return remote.server_pid(paths.server(host)) is not None


def boot(paths, record, host):
    """Nothing where the host is up already."""
    if is_up(paths, host):
        return
    start_server(paths, host)
    remote.must(paths.server(host), ["sh", "-c", mounts(paths)])
    network.connect(paths, record, host)
    disks.mount_local(paths, record, host)


def start_server(paths, host):
    command = keeper.server_command(paths.server(host), host, "--uts")
    log = shlex.quote(str(paths.folder / "log"))
    remote.must(paths.keeper,
                ["sh", "-c", f"exec setsid --fork {shlex.join(command)} </dev/null >>{log} 2>&1"])
    waiting.until(lambda: is_up(paths, host), f"host {host} to start (see {paths.folder}/log)")


def mounts(paths):
    hidden = any(REPOSITORY.is_relative_to(folder) for folder in PRIVATE)
    return MOUNTS.format(visible=REPOSITORY if hidden else "", folder=paths.folder,
                         shared=paths.shared,
                         etc_hosts=paths.etc_hosts)


def kill(paths, host, reset=False):
    """Power off: the network falls silent first, then every process ends. With `reset` the links
    stay, so that the peers see their connections closed, as when the processes die and the
    operating system lives on."""
    if not is_up(paths, host):
        return
    if not reset:
        network.cut(paths, host)
    disks.unthrottle(paths, host)
    keeper.kill_server(paths.server(host))
    if not reset:
        network.unplug(paths, host)


def write_etc_hosts(paths, record):
    lines = ["127.0.0.1 localhost"]
    for number, host in enumerate(names(record["hosts"])):
        lines += [f"{network.address(0, number)} {host}"]
        lines += [f"{network.address(extra, number)} {host}-net{extra}" for extra
                  in range(1, record["networks"])]
    state.replace_text(paths.etc_hosts, "\n".join(lines) + "\n")
