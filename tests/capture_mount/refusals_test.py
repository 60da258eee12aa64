#!/usr/bin/env python3
"""`backstay mount` and `unmount` say no with a message that says what to do, and an exit code.

    refusals_test.py BACKSTAY
"""

import os
import pathlib
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from mounting import MountWorld, can_mount  # noqa: E402
from processes import wait_for  # noqa: E402


def need(condition, what):
    if not condition:
        sys.exit(what)


def refused(done, code, *words):
    need(done.returncode == code, f"exit code {code} expected: {done}")
    need(all(word in done.stderr for word in words), f"{words} expected: {done.stderr}")


def folders(world):
    target, mounted = world.target, world.mounted

    def mount(folder, over, *more):
        return world.command("mount", folder, "--over", over, *more)

    refused(mount(world.folder / "none", target), 3, "is missing", "mkdir -p")
    refused(mount(mounted, world.folder / "none"), 3, "TARGET", "is missing")
    refused(mount(target, target), 2, "one folder")
    (target / "inside").mkdir()
    refused(mount(target / "inside", target), 2, "inside")
    refused(mount(mounted, world.folder), 2, "inside")
    (target / "file").write_text("x")
    refused(mount(target / "file", target), 2, "no folder")
    refused(mount(mounted, target / "file"), 2, "no folder")
    (mounted / "file").write_text("x")
    refused(mount(mounted, target), 2, "not empty")
    (mounted / "file").unlink()
    refused(mount(mounted, "/proc/self"), 1, "cannot be written")
    refused(mount("a" * 300, target), 2, "too long")
    refused(mount("a/" * 3000, target), 2, "too long")
    refused(mount(mounted, target, "--job", "a" * 300), 2, "name")
    refused(mount(mounted, target, "--capture-files", "/elsewhere/*"), 2, "relative to the mount")
    broken = world.folder / "a\nb"
    broken.mkdir()
    refused(mount(broken, target), 2, "line break")
    world.env["BACKSTAY_DIR"] = f"{mounted}/versions"
    refused(mount(mounted, target), 2, "Backstay's own folder")
    world.env["BACKSTAY_DIR"] = f"{world.folder}/versions"


def tools(world):
    path = world.env["PATH"]
    world.env["PATH"] = str(world.folder)
    refused(world.command("mount", world.mounted, "--over", world.target), 1, "fusermount3",
            "apt install fuse3")
    world.env["PATH"] = path
    if os.geteuid() == 0:
        hidden = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /dev && exec \"$@\"",
                  "sh", world.program, "mount", world.mounted, "--over", world.target]
        done = subprocess.run(list(map(str, hidden)), env=world.env, check=False, text=True,
                              stderr=subprocess.PIPE)
        refused(done, 1, "no /dev/fuse", "modprobe fuse")


def read_only(world):
    if os.geteuid() != 0:
        return
    words = ("mount -t tmpfs -o ro none \"$1\" && exec \"$2\" mount \"$3\" --over \"$1\"")
    done = subprocess.run(["unshare", "--mount", "sh", "-c", words, "sh", world.target,
                           world.program, world.mounted], env=world.env, check=False, text=True,
                          stderr=subprocess.PIPE)
    refused(done, 1, "cannot be written")


def mounted_already(world):
    other = world.folder / "other"
    other.mkdir()
    world.mount()
    (world.mounted / "in").mkdir()
    refused(world.command("mount", world.mounted, "--over", other), 7, "mounted already")
    refused(world.command("mount", world.mounted / "in", "--over", other), 2, "inside of")
    refused(world.command("mount", other, "--over", world.mounted), 1, "FUSE")
    refused(world.command("unmount", other), 3, "not mounted", str(world.mounted))
    with open(world.mounted / "held", "w", encoding="ascii"):
        refused(world.command("unmount", world.mounted), 7, f"process {os.getpid()} ",
                "held open")
    working = subprocess.Popen(["sleep", "100"], cwd=world.mounted)
    refused(world.command("unmount", world.mounted), 7, f"process {working.pid} (sleep)",
            "works in it")
    working.kill()
    working.wait()
    world.unmount()
    refused(world.command("unmount", world.mounted), 3, "not mounted")


def dead(world):
    """Errors, not hangs; doctor finds it, unmount removes it."""
    world.mount()
    (world.mounted / "a").write_bytes(bytes(300_000))
    held = subprocess.Popen(["sleep", "100"], cwd=world.mounted)
    need(world.kill_mount() == 1, "no daemon was there")
    began = time.monotonic()
    try:
        (world.mounted / "a").read_bytes()
        sys.exit("a dead mount could be read")
    except OSError as failure:
        need(failure.errno == 107, f"ENOTCONN expected: {failure}")
    need(time.monotonic() - began < 5, "a dead mount hangs")
    done = world.command("doctor", "--quick")
    need(f"backstay unmount {world.mounted}" in done.stdout and done.returncode == 1,
         f"doctor: {done}")
    refused(world.command("mount", world.mounted, "--over", world.target), 7, "has died",
            "backstay unmount")
    done = world.unmount()
    need("had died" in done.stdout, f"unmount: {done}")
    held.kill()
    held.wait()
    need((world.target / "a").read_bytes() == bytes(300_000), "a is not at home")
    world.mount()
    need((world.mounted / "a").read_bytes() == bytes(300_000), "a is not there")
    done = world.command("doctor", "--quick")
    need(f"unmount {world.mounted}" not in done.stdout, f"doctor: {done}")


def ended_by_signal(world):
    """SIGTERM: the mount goes, files come home."""
    world.mount()
    (world.mounted / "a").write_bytes(bytes(300_000))
    pid = world.pids("backstay-mount")[0]
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not world.pids("backstay-mount"), "the end of the daemon")
    need(not os.path.ismount(world.mounted), "still mounted")
    need((world.target / "a").read_bytes() == bytes(300_000), "a is not at home")


def words(world):
    done = world.command("mount", "--help")
    need(done.returncode == 0 and "Example: backstay mount" in done.stdout, f"help: {done}")
    done = world.command("unmount", "--help")
    need(done.returncode == 0 and "Example: backstay unmount" in done.stdout, f"help: {done}")
    refused(world.command("mount", world.mounted), 2, "--over")
    done = world.command("mount", world.mounted, "--over", world.target, "--json")
    need(done.returncode == 0 and '"target"' in done.stdout, f"json: {done}")
    need(world.command("unmount", world.mounted, "--json").returncode == 0, "unmount --json")


def main():
    if can_mount():
        print(f"left out: {can_mount()}")
        sys.exit(77)
    for test in (folders, tools, read_only, words, mounted_already, dead, ended_by_signal):
        with MountWorld(pathlib.Path(sys.argv[1])) as world:
            test(world)
            print(test.__name__, flush=True)


if __name__ == "__main__":
    main()
