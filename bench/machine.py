"""Facts about the machine that a measurement belongs to, for its JSON and for the documents."""

import datetime
import os
import pathlib
import platform
import subprocess


def cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def is_virtual():
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    return "hypervisor" in flags


def memory_bytes():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def file_system(folder):
    """Type of the file system that holds `folder`: of its longest mount point."""
    path, best = str(folder.resolve()), ("", "unknown")
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _, point, kind = line.split()[:3]
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best[0]):
            best = (point, kind)
    return best[1]


def commit_of(root):
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=7"]
    try:
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def facts(folder, root):
    """Read before the benchmarks run: the load is that of others."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "commit": commit_of(root),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "virtual": is_virtual(),
        "memory_gib": round(memory_bytes() / (1 << 30), 1),
        "kernel": platform.release().split("-")[0],
        "file_system": file_system(folder),
        "load_average": round(os.getloadavg()[0], 2),
    }


def sentence(machine, checkpoint):
    """One line for the documents. The disk's speed is that of the raw writes and reads of the run.
    """
    gigabytes = checkpoint["bytes"] / 1e9
    load = machine["load_average"]
    return (f"{machine['date']}, commit {machine['commit']}: {machine['cores']} cores of "
            f"{'a virtual machine, ' if machine['virtual'] else ''}{machine['cpu']}, "
            f"{machine['memory_gib']:.0f} GiB, Linux {machine['kernel']}, "
            f"{machine['file_system']}, "
            f"disk {gigabytes / checkpoint['raw_write_s']:.1f} GB/s raw write and "
            f"{gigabytes / checkpoint['raw_read_s']:.1f} GB/s raw read; "
            f"{'' if load is None else f'load {load:.1f} before the run; '}"
            f"medians of {checkpoint['repetitions']}.")
