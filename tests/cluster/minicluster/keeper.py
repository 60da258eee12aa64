"""The first process of a cluster: everything else lives in its namespaces and ends with it.

It holds the network namespace of the switches, the mounts that all hosts share, and the process
namespace above those of the hosts. Killing this one process makes the kernel end every process,
link and mount of the cluster.
"""

import fcntl
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from . import remote, state, waiting
from .errors import ClusterError

SERVER = Path(__file__).with_name("server.py")
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


def server_command(path, name, *namespaces):
    return ["unshare", "--mount", "--pid", "--net", "--ipc", *namespaces, "--fork",
            "--propagation", "private",
            "--mount-proc", PYTHON, "-I", str(SERVER), str(path), name]


def start(paths):
    """Holds the lock of `alive` from before its birth to its end, so that an orphan is always
    found.
    """
    with open(paths.alive, "ab") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        with open(paths.folder / "log", "ab") as log:
            subprocess.Popen(server_command(paths.keeper, paths.name, "--uts"),
                             pass_fds=[alive.fileno()],
                             start_new_session=True, cwd="/", stdin=subprocess.DEVNULL, stdout=log,
                             stderr=log)
    if find(paths) is None:
        raise ClusterError(f"the first process of the cluster did not start: "
                           f"{(paths.folder / 'log').read_text()[-2000:]}")


def find(paths):
    """Process id of the keeper, or None where there is none. One that is just being born is waited
    for.
    """
    def born_or_dead():
        return remote.server_pid(paths.keeper) or state.is_free(paths.alive)
    if not paths.alive.exists():
        return None
    found = waiting.until(born_or_dead, f"the first process of cluster {paths.name}")
    return None if found is True else found


def stop(paths):
    find(paths)  # waits for one that is just being born
    kill_server(paths.keeper)
    if paths.alive.exists():
        waiting.until(lambda: state.is_free(paths.alive), f"the end of cluster {paths.name}")


def kill_server(path):
    """Ends the server and every process of its process namespace; returns when they have ended."""
    pid = remote.server_pid(path)
    if pid is None:
        return
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        # still: the number was not given to another process meanwhile.
        if remote.server_pid(path) == pid:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            select.select([descriptor], [], [])  # readable once the process has ended
    except ProcessLookupError:
        pass
    finally:
        os.close(descriptor)
