#!/usr/bin/env python3
"""What a program of Fortran may name is there: every function of the stock libraries.

Usage: symbols_test.py FOLDER MPI [unittest arguments]
Standard library only.
"""

import subprocess
import sys
import unittest
from pathlib import Path

FOLDER, MPI = sys.argv[1:3]
STOCK = Path("/usr/lib/x86_64-linux-gnu")
LIBRARIES = {
    "mpich": ("libmpich.so.12", ["libmpichfort.so.12"]),
    "openmpi": (
        "libmpi.so.40",
        ["libmpi_mpifh.so.40", "libmpi_usempif08.so.40", "libmpi_usempi_ignore_tkr.so.40"],
    ),
}
C_LIBRARY, FORTRAN_LIBRARIES = LIBRARIES[MPI]


def names(kind, path):
    """{name: place}"""
    done = subprocess.run(
        ["nm", "-D", f"--{kind}-only", path], capture_output=True, text=True, check=True
    )
    words = [line.split() for line in done.stdout.splitlines()]
    return {one[-1].split("@")[0]: one[0] for one in words}


class Symbols(unittest.TestCase):
    def test_what_the_stock_libraries_take_from_the_c_library(self):
        ours = names("defined", Path(FOLDER) / C_LIBRARY)
        real = names("defined", STOCK / C_LIBRARY)
        for library in FORTRAN_LIBRARIES:
            wanted = names("undefined", STOCK / library)
            self.assertEqual(sorted((wanted.keys() & real.keys()) - ours.keys()), [], library)

    @unittest.skipUnless(MPI == "openmpi", "MPICH's own library is what the program gets")
    def test_each_spelling_of_a_function_of_ours(self):
        """A name that leads to the stock function would be without ours."""
        ours = names("defined", Path(FOLDER) / "libmpi_mpifh.so.40")
        stock = names("defined", STOCK / "libmpi_mpifh.so.40")
        replaced = {place for name, place in stock.items() if name in ours}
        self.assertGreater(len(replaced), 20)
        left = {name for name, place in stock.items() if place in replaced} - ours.keys()
        self.assertEqual(left, set())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
