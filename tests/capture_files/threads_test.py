#!/usr/bin/env python3
"""Threads write captured files while another one starts processes: every byte is there.

    threads_test.py LIBRARY PROGRAM FOLDER
"""

import pathlib
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
from capturing import Capture, temporary_files  # noqa: E402

ROUNDS = 40


def main():
    library, program, folder = (pathlib.Path(argument) for argument in sys.argv[1:4])
    folder = pathlib.Path(tempfile.mkdtemp(prefix="threads", dir=folder.parent))
    done = Capture(library, folder).run(program, folder, ROUNDS)
    if done.returncode != 0:
        sys.exit(f"status {done.returncode}; the files are left in {folder}")
    if temporary_files(folder):
        sys.exit(f"left {temporary_files(folder)}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
