"""The disk of each host, and the shared directory: file systems of their own on sparse files,
through loop devices.

/mnt/local is the host's disk (/var/tmp lies on it too); it outlives the host's processes.
/mnt/shared is one file system for all hosts, as a parallel file system would be. Where loop devices
are refused, tmpfs takes their place.
"""

import fcntl
import os
import re
import struct
import subprocess
from pathlib import Path

from . import remote, state, waiting
from .errors import ClusterError, MissingFeature

LOCAL, SHARED = "/mnt/local", "/mnt/shared"
# FS_IOC_SHUTDOWN of the kernel: every later call to the file system fails with EIO.
SHUTDOWN = 0x8004587D
WITHOUT_FLUSH = 2
THROTTLE = Path("/sys/fs/cgroup/blkio")
UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}

MOUNT_LOCAL = """
set -e
{mount} {local}
mkdir -p {local}/var-tmp
chmod 1777 {local} {local}/var-tmp
mount --bind {local}/var-tmp /var/tmp
"""


def image(paths, host):
    return paths.disks / f"{host}.img"


def lost_mark(paths, host):
    return paths.disks / f"{host}.lost"


def make_image(path, size):
    """A new empty file system; takes room only for what is written."""
    make(["truncate", "-s", size, path])
    make(["mkfs.ext4", "-q", "-F", "-m", "0", "-E",
          "lazy_itable_init=1,lazy_journal_init=1,nodiscard", path])


def make(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise ClusterError(f"{command[0]} {command[-1]}: {done.stderr.strip()}")


def loop_works():
    return os.path.exists("/dev/loop-control")


def mount_command(paths, record, name):
    if record["disk"] == "tmpfs":
        return f"mount -t tmpfs -o size={record['disk_size']} tmpfs"
    if not image(paths, name).exists():
        make_image(image(paths, name), record["disk_size"])
    return f"mount -o loop {image(paths, name)}"


def mount_local(paths, record, host):
    script = MOUNT_LOCAL.format(mount=mount_command(paths, record, host), local=LOCAL)
    remote.must(paths.server(host), ["sh", "-c", script])
    if lost_mark(paths, host).exists():
        fail(paths, record, host)


def mount_shared(paths, record):
    paths.shared.mkdir(exist_ok=True)
    remote.must(paths.keeper,
                ["sh", "-c", f"{mount_command(paths, record, 'shared')} {paths.shared} && "
                                           f"chmod 1777 {paths.shared}"])


def lose(paths, record, host):
    """The disk is gone with all that was on it: what is open or opened later fails with EIO (loop
    devices).
    """
    if lost_mark(paths, host).exists():
        return
    lost_mark(paths, host).touch()
    if remote.server_pid(paths.server(host)):
        fail(paths, record, host)
    image(paths, host).unlink(missing_ok=True)


def fail(paths, record, host):
    if record["disk"] == "tmpfs":  # no way to fail it: an empty one that cannot be written comes over it
        script = f"umount -l /var/tmp {LOCAL}; mount -t tmpfs -o ro tmpfs {LOCAL} && mount --bind {LOCAL} /var/tmp"
        remote.must(paths.server(host), ["sh", "-c", script])
        return
    folder = os.open(f"/proc/{remote.server_pid(paths.server(host))}/root{LOCAL}", os.O_RDONLY)
    try:
        fcntl.ioctl(folder, SHUTDOWN, struct.pack("I", WITHOUT_FLUSH))
    finally:
        os.close(folder)


def restore(paths, record, host):
    """A new, empty disk, as fast as it can be, in the place of the lost one. Files that were open
    stay lost.
    """
    if not lost_mark(paths, host).exists():
        raise ClusterError(f"{host} has its disk; lose it first: mini lose-disk {host}")
    unthrottle(paths, host)
    image(paths, host).unlink(missing_ok=True)
    lost_mark(paths, host).unlink()
    if remote.server_pid(paths.server(host)):
        remote.must(paths.server(host), ["sh", "-c", f"umount -l /var/tmp && umount -l {LOCAL}"])
        mount_local(paths, record, host)


# --- slow disks -----------------------------------------------------------------------------------

def parse_rate(text):
    """Bytes a second of '20M' or '20MB/s'."""
    matched = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]?)(b|b/s)?", text.lower())
    if not matched or float(matched[1]) == 0:
        raise ClusterError(f"'{text}' is not a rate of a disk; write it like 20M (megabytes a "
                           f"second), or 'off'")
    return int(float(matched[1]) * UNITS[matched[2]])


def loop_device(path):
    """major:minor of the loop device of an image."""
    device = subprocess.run(["losetup", "--noheadings", "--output", "MAJ:MIN", "--associated",
                             path],
                            capture_output=True, text=True, check=True).stdout.split()
    return device[0] if device else None


def throttle(paths, record, name, rate):
    """Limits reads and writes that reach the device of a host or of `shared`, each to `rate` bytes
    a second in all.

    The limit is set in the root group, which is where the kernel accounts write-back of buffered
    data, and concerns this one device. It must be taken away again: the device's number outlives
    the file system on it.
    """
    if record["disk"] == "tmpfs":
        raise MissingFeature("disks are a tmpfs here and cannot be slowed (loop devices are "
                             "missing)")
    if not can_be_slow():
        raise MissingFeature(f"slow disks need the blkio controller of version 1 at {THROTTLE}")
    device = loop_device(image(paths, name))
    if device is None:
        raise ClusterError(f"{name} is down; start it with: mini boot {name}")
    note(paths, {**throttled(paths), name: device})
    limit(device, rate)


def unthrottle(paths, name):
    """Nothing where there is no limit."""
    devices = throttled(paths)
    if name in devices:
        limit(devices.pop(name), 0)
        note(paths, devices)


def can_be_slow():
    return (THROTTLE / "blkio.throttle.write_bps_device").exists()


def limit(device, rate):
    for way in ("read", "write"):
        (THROTTLE / f"blkio.throttle.{way}_bps_device").write_text(f"{device} {rate}\n")


def throttled(paths):
    """name -> device of those that have a limit."""
    return dict(line.split() for line
                in paths.throttled.read_text().splitlines()) if paths.throttled.exists() else {}


def note(paths, devices):
    state.replace_text(paths.throttled,
                       "".join(f"{name} {device}\n" for name, device in devices.items()))


def throttled_rate(paths, name):
    """Bytes a second, or None."""
    device = throttled(paths).get(name)
    if device is None:
        return None
    for line in (THROTTLE / "blkio.throttle.write_bps_device").read_text().splitlines():
        if line.split()[0] == device:
            return int(line.split()[1])
    return None


def clean_up(paths):
    """After the last process has ended: the limits go, and the loop devices have gone by
    themselves.
    """
    for name in throttled(paths):
        unthrottle(paths, name)
    if paths.disks.exists():
        waiting.until(lambda: not attached(paths),
                      f"the loop devices of cluster {paths.name} to go")


def attached(paths):
    listing = subprocess.run(["losetup", "--noheadings", "--output", "BACK-FILE", "--list"],
                             capture_output=True,
                             text=True, check=True).stdout
    return [line for line in listing.splitlines() if line.startswith(str(paths.disks))]
