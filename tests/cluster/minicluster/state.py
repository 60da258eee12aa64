"""What is written down about a cluster: one folder, and nothing anywhere else.

    FOLDER/lock              held by a command that changes anything, of whatever cluster
    FOLDER/NAME/alive        locked for as long as the cluster's first process lives
    FOLDER/NAME/cluster.json written once everything is up
    FOLDER/NAME/cluster.sock, n0.sock, ...   the servers (server.py)
    FOLDER/NAME/disks/       images of the hosts' disks and of the shared directory
    FOLDER/NAME/shared/      where the shared directory is mounted, for the cluster's processes only
    FOLDER/NAME/throttled    disks whose rate is limited in the machine's own control group, and
                             their devices
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
from pathlib import Path

from .errors import ClusterError

NAME_PATTERN = r"[a-z][a-z0-9-]{0,19}"


def root():
    return Path(os.environ.get("BACKSTAY_MINI_DIR", "/var/lib/backstay-mini"))


class Paths:
    """Names of the files of one cluster."""

    def __init__(self, name):
        if not re.fullmatch(NAME_PATTERN, name):
            raise ClusterError(f"'{name}' cannot name a cluster: use at most 20 of a-z, 0-9 and "
                               f"'-', a letter first")
        self.name = name
        self.folder = root() / name
        self.alive = self.folder / "alive"
        self.record = self.folder / "cluster.json"
        self.keeper = self.folder / "cluster.sock"
        self.disks = self.folder / "disks"
        self.shared = self.folder / "shared"
        self.etc_hosts = self.folder / "hosts"
        self.throttled = self.folder / "throttled"
        self.slurm = self.folder / "slurm"

    def server(self, host):
        return self.folder / f"{host}.sock"


def recorded_names():
    """Clusters that left something here, living or not."""
    return sorted(entry.name for entry in root().iterdir()
                  if entry.is_dir()) if root().exists() else []


def read_record(paths):
    """What `up` wrote last of all, or None: not there or not complete."""
    try:
        return json.loads(paths.record.read_text())
    except FileNotFoundError:
        return None


def write_record(paths, record):
    replace_text(paths.record, json.dumps(record, indent=1))


def replace_text(path, text):
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    new.rename(path)


@contextlib.contextmanager
def changing():
    """One command at a time changes clusters. The folder goes with the last cluster."""
    descriptor = take_lock()
    try:
        yield
    finally:
        if not recorded_names():
            shutil.rmtree(root())
        os.close(descriptor)


def take_lock():
    while True:
        root().mkdir(mode=0o755, parents=True, exist_ok=True)
        try:
            descriptor = os.open(root() / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.stat(root() / "lock").st_ino == os.fstat(descriptor).st_ino:
                return descriptor
            os.close(descriptor)  # the folder went while we waited, and came back
        except FileNotFoundError:
            pass


def is_free(path):
    """No process holds the lock of this file."""
    with open(path, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
