"""Disks that are the host's own, that are lost, and a shared directory that is slow."""

import re
import subprocess

import pytest

from conftest import finish, wait_for_line
from minicluster import disks


def written_bytes_per_s(mini, host, path, options, mib=32):
    """dd of some MiB, by its own clock."""
    output = mini.on(host, f"dd if=/dev/zero of={path} bs=1M count={mib} {options} 2>&1")
    return mib * 2**20 / float(re.search(r"copied, ([\d.e-]+) s", output)[1])


def test_direct_writes_work_on_both(cluster):
    for path in ("/mnt/local/direct", "/mnt/shared/direct", "/var/tmp/direct"):
        cluster.on("n0", f"dd if=/dev/zero of={path} bs=1M count=4 oflag=direct status=none")
        cluster.on("n0", f"dd if={path} of=/dev/null bs=1M iflag=direct status=none")


def test_a_lost_disk_fails_everything_and_a_new_one_is_empty(whole):
    script = ("import sys; f = open('/mnt/local/open', 'wb', buffering=0); f.write(b'x'); "
              "print('ready', flush=True); "
              "sys.stdin.read()\ntry: f.write(b'y')\nexcept OSError as e: print('errno', e.errno)")
    whole.on("n1", "echo precious >/mnt/local/file; sync")
    run = whole.start("exec", "n1", "--", "python3", "-c", script, stdin=subprocess.PIPE)
    wait_for_line(run, "ready")
    whole("lose-disk", "n1")
    assert finish(run) == (0, "errno 5\n")
    assert whole.host("n1")["disk"] == "lost"
    for command in ("cat /mnt/local/file", "touch /mnt/local/new", "touch /var/tmp/new"):
        code, output = whole.run("exec", "n1", "--", "sh", "-c", command)
        assert code == 1 and "Input/output error" in output, output
    whole.on("n0", "touch /mnt/local/mine")
    whole("kill", "n1")
    whole("boot", "n1")
    assert whole.run("exec", "n1", "--", "touch",
                     "/mnt/local/new")[0] == 1, "still lost after a boot"
    whole("restore-disk", "n1")
    assert whole.on("n1", "ls -A /mnt/local /var/tmp; touch /var/tmp/new").split() == [
        "/mnt/local:", "lost+found", "var-tmp", "/var/tmp:"]
    code, output = whole.run("restore-disk", "n1")
    assert code == 1 and "has its disk" in output


def test_a_disk_that_is_lost_while_the_host_is_down(whole):
    whole.on("n3", "echo precious >/mnt/local/file; sync")
    whole("kill", "n3")
    whole("lose-disk", "n3")
    whole("restore-disk", "n3")
    whole("boot", "n3")
    assert whole.run("exec", "n3", "--", "cat", "/mnt/local/file")[0] == 1


needs_slow = pytest.mark.skipif(not disks.can_be_slow(),
                                reason="slow disks need the blkio controller of version 1")


@needs_slow
def test_slow_shared_storage(cluster):
    rate = 20e6
    cluster("slow-shared", "20M")
    reached = {"direct": written_bytes_per_s(cluster, "n0", "/mnt/shared/slow", "oflag=direct"),
               "buffered, then synced": written_bytes_per_s(cluster, "n1", "/mnt/shared/slow",
                   "conv=fsync")}
    local = written_bytes_per_s(cluster, "n0", "/mnt/local/fast", "oflag=direct")
    print("bytes a second at 20M:", reached, "local disk:", local)
    assert cluster.status()["shared"]["rate_bytes_per_s"] == rate
    for value in reached.values():
        assert value < 1.2 * rate, reached  # a busy machine may be slower
    assert local > 2 * rate
    cluster("slow-shared", "off")
    assert cluster.status()["shared"]["rate_bytes_per_s"] is None
    assert written_bytes_per_s(cluster, "n0", "/mnt/shared/slow", "oflag=direct") > 2 * rate


@needs_slow
def test_a_slow_disk_of_one_host(whole):
    rate = 10e6
    whole("slow-disk", "n1", "10M")
    whole("slow-shared", "20M")
    reached = written_bytes_per_s(whole, "n1", "/var/tmp/slow", "oflag=direct", mib=8)
    other = written_bytes_per_s(whole, "n2", "/var/tmp/fast", "oflag=direct", mib=8)
    print("bytes a second at 10M:", reached, "another host:", other)
    assert reached < 1.2 * rate and other > 2 * rate
    assert whole.host("n1")["disk_rate_bytes_per_s"] == rate and whole.host("n2")["disk_rate_bytes_per_s"] is None
    whole("kill", "n1")  # its device may become that of another disk
    assert whole.host("n1")["disk_rate_bytes_per_s"] is None and whole.status()["shared"]["rate_bytes_per_s"] == 20e6
    code, output = whole.run("slow-disk", "n1", "10M")
    assert code == 1 and "n1 is down" in output
    whole("slow-shared", "off")
    limits = (disks.THROTTLE / "blkio.throttle.write_bps_device").read_text()
    assert not [line for line in limits.splitlines() if line.split()[1]
                in ("10000000", "20000000")], limits
