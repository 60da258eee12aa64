"""Up and down, twice, side by side, killed in the middle: nothing is left."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from minicluster import state, waiting


def lines(*command):
    return set(subprocess.run(command, capture_output=True, text=True,
                              check=True).stdout.splitlines())


def processes():
    """Those of our clusters: their command line names the folder, or they live in other namespaces
    than we do.
    """
    ours = os.readlink("/proc/self/ns/pid")
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "ns/pid") != ours:
                found.add((entry.name, (entry / "cmdline").read_bytes()))
            elif entry.name.isdigit() and str(state.root()).encode() in (entry
                / "cmdline").read_bytes():
                found.add((entry.name, (entry / "cmdline").read_bytes()))
        except OSError:
            pass  # ended meanwhile
    return found


def machine():
    """All that a cluster could leave behind."""
    return {
        "network namespaces": lines("ip", "netns"),
        "links": {line.split(": ")[1] for line in lines("ip", "-o", "link")},
        # Other tests mount and unmount meanwhile.
        "mounts": {line for line in Path("/proc/self/mounts").read_text().splitlines()
                   if str(state.root()) in line or "/netns" in line},
        "loop devices": {line for line in lines("losetup", "--list", "-n", "-O", "BACK-FILE")
                         if str(state.root()) in line},
        "control groups": {folder for folder, _, _ in os.walk("/sys/fs/cgroup/blkio")},
        "limits": set(Path("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device").read_text().splitlines())
        if Path("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device").exists() else set(),
        "processes": processes(),
        "folder": state.root().exists(),
    }


@pytest.fixture
def clean(clusters):
    """The state before; after the test everything is as it was."""
    clusters("any")("down", "--all")
    before = machine()
    yield before
    clusters("any")("down", "--all")
    assert machine() == before


def test_up_and_down_leave_nothing(clusters, clean):
    mini = clusters("one")
    mini("up", 3)
    mini.on("n1",
            "setsid sleep 1000 >/dev/null 2>&1 & dd if=/dev/zero of=/mnt/local/data bs=1M count=8 "
            "status=none")
    mini("down")
    assert machine() == clean


def test_a_second_up_changes_nothing_and_another_size_is_refused(clusters, clean):
    mini = clusters("one")
    mini("up", 2)
    before = mini.status()
    mini("up", 2)
    assert mini.status() == before
    code, output = mini.run("up", 3)
    assert code == 1 and "is up with 2 hosts" in output and "mini down" in output


def test_two_clusters_side_by_side_have_the_same_addresses_and_do_not_meet(clusters, clean):
    one, two = clusters("one"), clusters("two")
    one("up", 2)
    two("up", 3)
    one.on("n0", "ping -c 1 -W 5 10.77.0.2")
    assert one.run("exec", "n0", "--", "ping", "-c", "1", "-W", "1", "10.77.0.3")[0] != 0
    one("down")
    two.on("n0", "ping -c 1 -W 5 n2")


@pytest.mark.parametrize("point",
                         ["one", "one/alive", "one/cluster.sock", "one/disks/shared.img",
                          "one/n0.sock",
                                   "one/disks/n0.img", "one/n2.sock", "one/disks/n2.img",
                                   "one/cluster.json"])
def test_up_killed_when_it_has_come_so_far(clusters, clean, point):
    mini = clusters("one")
    with mini.start("up", 3) as up:
        end = time.monotonic() + 30
        while not (state.root() / point).exists() and time.monotonic() < end:
            pass  # without pause: the point must not have passed
        up.send_signal(signal.SIGKILL)
    assert up.returncode == -signal.SIGKILL or point == "one/cluster.json", "it was too fast for this test"
    mini("up", 2) if point != "one/cluster.json" else mini("up", 3)
    mini.on("n1", "ping -c 1 -W 5 n0")
    mini("down", "--all")
    assert machine() == clean


def test_down_after_up_was_killed(clusters, clean):
    mini = clusters("one")
    with mini.start("up", 3) as up:
        waiting.until((state.root() / "one/n1.sock").exists, "n1")
        up.send_signal(signal.SIGKILL)
    assert "one" in mini("down", "--all")
    assert machine() == clean


def test_a_cluster_whose_first_process_was_killed_is_cleaned_by_the_next_up(clusters, clean):
    mini, other = clusters("one"), clusters("two")
    mini("up", 2)
    mini("slow-shared", "20M")
    from minicluster import keeper
    keeper.kill_server(state.Paths("one").keeper)
    code, output = mini.run("status")
    assert code == 1 and "is not up" in output
    other("up", 1)
    assert other("ls").split() == ["two"]


def test_disks_of_memory_where_loop_devices_are_missing(clusters, clean):
    mini = clusters("one")
    mini("up", 2, "--disk", "tmpfs")
    mini.on("n0", "echo mine >/mnt/local/file; echo ours >/mnt/shared/file")
    assert mini.on("n1", "cat /mnt/shared/file; ls -A /mnt/local /var/tmp").split() == [
        "ours", "/mnt/local:", "var-tmp", "/var/tmp:"]
    code, output = mini.run("slow-shared", "20M")
    assert code == 2 and "loop devices" in output
    mini("lose-disk", "n0")
    assert mini.run("exec", "n0", "--", "touch", "/mnt/local/new")[0] != 0


def test_down_without_a_cluster_says_so(clusters, clean):
    assert "nothing to end" in clusters("one")("down")
