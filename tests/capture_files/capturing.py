"""Runs programs with the library that captures files, as `backstay exec` would."""

import os
import subprocess


class Capture:
    """`library`: libbackstay_files.so. Files below `folder` are captured."""

    def __init__(self, library, folder, **variables):
        self.variables = {"LD_PRELOAD": os.path.abspath(library),
                          "BACKSTAY_CAPTURE": f"{os.path.abspath(folder)}/**", **variables}

    def environment(self):
        return {**os.environ, **self.variables}

    def run(self, *command, **options):
        return subprocess.run([str(part) for part in command], env=self.environment(),
                              check=False, **options)


def temporary_files(folder):
    """What the library leaves only where a process was killed."""
    return [path for path in folder.rglob(".backstay-*")]
