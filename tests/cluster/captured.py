"""Programs whose captured files stay where they were captured: what tests of lost hosts share."""

import itertools

from conftest import finish
from minicluster import waiting
from minicluster.mpi import LAUNCHER
from supervised import BACKSTAY, LAUNCHERS, SETTINGS, SILENT_S

names = (f"lost{number}" for number in itertools.count())
BYTES = 600_000  # smaller files do not go through the pool
# One process, which does not wait for the first file before it makes the second one.
COPY = """awk '{ f = FILENAME; sub("^in", "out", f); print > f }'"""


class Captured:
    """One job, whose programs copy files to a shared folder; those of `stuck` hosts stay where they
    were captured. Without `durable` hosts keep copies for each other.
    """

    def __init__(self, mini, *stuck, durable=True):
        self.mini = mini
        self.is_durable = durable
        self.more = {}
        self.shell = str(LAUNCHER)
        self.launcher = LAUNCHERS["openmpi"]
        self.job = next(names)
        self.folder = f"/mnt/shared/{self.job}"
        self.durable = f"{self.folder}/durable"
        self.agent = f"{self.folder}/agent"
        hosts = "|".join(stuck)
        mini.on("n0", f"""mkdir -m 700 {self.folder} && cd {self.folder} || exit
            mkdir -m 700 durable out in
            for name in a b c; do printf '%0{BYTES - 1}d\n' 0 | tr 0 $name >in/$name; done
            mkfifo never
            touch stuck
            cat >agent <<'END'
#!/bin/sh
[ ! -e {self.folder}/stuck ] ||
case $(hostname) in {hosts}) export BACKSTAY_FAILPOINT=home.1=hang;; esac
exec {SETTINGS["BACKSTAY_AGENT_PROGRAM"]} "$@"
END
            chmod +x agent""")
        for host in stuck:
            mini.on(host, "pkill -KILL -f '[/]backstayd ' || true")

    def start(self, options, hosts, script, failpoint="", on="n0", before=()):
        settings = {**SETTINGS, **self.more, "BACKSTAY_AGENT_PROGRAM": self.agent,
                    "BACKSTAY_DURABLE_DIR": self.durable if self.is_durable else "",
                    "BACKSTAY_FAILPOINT": failpoint}
        words = [f"{name}={value}" for name, value in settings.items() if value]
        launcher = [self.shell if word == str(LAUNCHER) else word for word in self.launcher]
        return self.mini.start("exec", on, "--", *before, "env", "-C", self.folder, *words,
                               BACKSTAY, "run", "--job", self.job, "--host-timeout", SILENT_S,
                               "--capture-files", f"{self.folder}/out/*", *options, "--",
                               *launcher, *hosts, "sh", "-c", script)

    def run(self, *words, **more):
        return finish(self.start(*words, **more))

    def reach_by(self, lines):
        """By a remote shell of its own, which does these lines of Python with its words first."""
        self.shell = f"{self.folder}/shell"
        self.mini.on("n0", f"""cat >{self.shell} <<'END'
#!/usr/bin/env python3
import os, sys
words = sys.argv[1:]
{lines}
os.execv("{LAUNCHER}", ["{LAUNCHER}", *words])
END
            chmod +x {self.shell}""")

    def tool(self, host, words):
        return self.mini.run("exec", host, "--", BACKSTAY, *words.split())

    def wait_for_durable(self, host, count):
        folder = f"{self.durable}/{self.job}.files.{host}"
        waiting.until(lambda: self.mini.on("n0", f"ls {folder}/v*/commit.durable 2>/dev/null | "
                                                 f"wc -l").strip() == str(count),
                      f"{count} durable versions of {host}")

    def count(self, host, owner, name):
        """How many versions of the owner's files have a file of that name on the host's disk."""
        folder = f"/var/tmp/backstay-root/{self.job}.files.{owner}"
        return int(self.mini.on(host, f"ls -d {folder}/v*/{name} 2>/dev/null | wc -l"))

    def wait_for_protected(self, host, count):
        waiting.until(lambda: self.count(host, host, "commit.protected") == count,
                      f"{count} protected versions of {host}")

    def size(self, name):
        return int(self.mini.on("n0", f"stat -c %s {self.folder}/out/{name}"))

    def is_home(self, name):
        return self.mini.run("exec", "n0", "--", "cmp", f"{self.folder}/in/{name}",
                             f"{self.folder}/out/{name}")[0] == 0
