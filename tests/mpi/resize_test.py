#!/usr/bin/env python3
"""Versions saved by one number of ranks and brought back by another: whole, or refused with a
reason.

Usage: resize_test.py MPIRUN BLOCKS BACKSTAYD [unittest arguments]. Standard library only. The
shapes are drawn from BACKSTAY_TEST_SEED, which is printed.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import unittest
from math import prod
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from processes import end_agents, wait_for  # noqa: E402

MPIRUN, BLOCKS, BACKSTAYD = sys.argv[1:4]
SEED = int(os.environ.get("BACKSTAY_TEST_SEED") or random.SystemRandom().randrange(2**32))
ANOTHER_NUMBER, DAMAGED = 21, 50  # backstay.h


class Sizes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="backstay-resize-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.socket = self.folder / "agent.sock"
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("BACKSTAY_")},
            "BACKSTAY_JOB": "resize",
            "BACKSTAY_DIR": str(self.folder / "store"),
            "BACKSTAY_AGENT_SOCKET": str(self.socket),
            "BACKSTAY_AGENT_PROGRAM": BACKSTAYD,
            "BACKSTAY_AGENT_IDLE_EXIT_S": "60",
            "BACKSTAY_POOL_SIZE_MIB": "64",
            "BACKSTAY_POOL_BUFFER_MIB": "1",
            "BACKSTAY_CHECKPOINT_POLICY": "request",
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
        }
        self.addCleanup(end_agents, self.socket)

    def start_agent(self, failpoint):
        """One that the ranks find, so that only it has the failpoint."""
        end_agents(self.socket, signal.SIGKILL)
        self.socket.unlink(missing_ok=True)
        agent = subprocess.Popen([BACKSTAYD, "--foreground", "--socket", str(self.socket)],
                                 cwd=self.folder,
                                 env={**self.environment, "BACKSTAY_FAILPOINT": failpoint},
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(agent.wait)  # end_agents() comes later, and cleanups go backwards
        self.addCleanup(agent.kill)
        wait_for(self.socket.exists, "the agent to listen")
        return agent

    def run_blocks(self, what, shape, grid, flaw="", returns=0):
        command = [MPIRUN, "-n", str(prod(grid)), BLOCKS, what, "x".join(map(str, shape)),
                   "x".join(map(str, grid)), flaw]
        done = subprocess.run(command, env=self.environment, cwd=self.folder, text=True,
                              timeout=100,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode == 0, returns == 0, f"{' '.join(command)}\n{done.stdout}")
        return done.stdout

    def save(self, shape, grid, flaw=""):
        self.assertIn("saved version=", self.run_blocks("save", shape, grid, flaw))

    def load(self, shape, grid, flaw=""):
        return [line for line in self.run_blocks("load", shape, grid, flaw).splitlines()
                if " code=" in line or " version=" in line][-1]

    def refused(self, shape, grid, because):
        said = self.load(shape, grid)
        self.assertTrue(said.startswith(f"untouched code={ANOTHER_NUMBER} "), said)
        self.assertIn(because, said)

    # ---------------------------------------------------------------------------------------------

    def test_blocks_of_one_to_four_dimensions_come_back_on_any_grid(self):
        choose = random.Random(SEED)
        for dims in (1, 2, 3, 4):
            shape = [choose.randint(3, 40) for _ in range(dims)]
            grids = [[choose.randint(1, 3 if dims < 3 else 2) for _ in range(dims)] for _
                     in range(3)]
            for grid in grids[1:]:  # the same number of ranks must have the same grid
                while prod(grid) == prod(grids[0]):
                    grid[0] += 1
            with self.subTest(f"replay with BACKSTAY_TEST_SEED={SEED}", shape=shape, grids=grids):
                self.environment["BACKSTAY_JOB"] = f"dims-{dims}"
                self.save(shape, grids[0])
                self.assertEqual(self.load(shape, grids[1]), "good version=1")
                self.save(shape, grids[0])
                end_agents(self.socket)  # the next one reads the disk
                self.assertEqual(self.load(shape, grids[2]), "good version=2")

    def test_chunks_that_end_inside_of_a_row(self):
        shape = (700, 1301)  # 3.6 MB in chunks of 1 MiB
        self.save(shape, (2, 1))
        self.assertEqual(self.load(shape, (1, 3)), "good version=1")

    def test_a_damaged_version_is_left_for_the_one_before(self):
        self.save((64, 1000), (2, 2))
        self.save((64, 1000), (2, 2))
        end_agents(self.socket)
        segment = next((self.folder / "store/resize").glob("v*2/*.segment"))
        content = bytearray(segment.read_bytes())
        content[4096 + 5000] ^= 1
        segment.write_bytes(content)
        self.assertEqual(self.load((64, 1000), (3, 1)), "good version=1")
        self.assertEqual(self.load((64, 1000), (2, 2)), "good version=1")

    def test_without_a_good_version_nothing_is_touched(self):
        self.save((64, 1000), (2, 2))
        end_agents(self.socket)
        segment = next((self.folder / "store/resize").glob("v*1/*.segment"))
        os.truncate(segment, 8192)
        said = self.load((64, 1000), (3, 1))
        self.assertTrue(said.startswith(f"untouched code={DAMAGED} "), said)

    def test_an_unreadable_version_is_left_for_the_one_before(self):
        self.save((64, 1000), (2, 2))
        self.save((64, 1000), (2, 2))
        end_agents(self.socket)
        segment = next((self.folder / "store/resize").glob("v*2/*.segment"))
        segment.rename(self.folder / "away")
        segment.symlink_to("x"
                           * 300)  # an error of the name: it cannot be read, but that is no damage
        self.assertEqual(self.load((64, 1000), (3, 1)), "good version=1")
        end_agents(self.socket)
        segment.unlink()
        (self.folder / "away").rename(segment)
        self.assertEqual(self.load((64, 1000), (3, 1)), "good version=2")

    def test_an_unreadable_only_version_is_no_new_beginning(self):
        self.save((64, 1000), (2, 2))
        end_agents(self.socket)
        segment = next((self.folder / "store/resize").glob("v*1/*.segment"))
        segment.unlink()
        segment.mkdir()
        said = self.load((64, 1000), (3, 1))
        self.assertTrue(said.startswith(f"untouched code={DAMAGED} "), said)
        self.assertIn("version 1", said)

    def test_a_damaged_version_of_others_is_left_for_one_of_our_own_number(self):
        self.save((64, 1000), (3, 1))
        self.save((64, 1000), (2, 2))
        end_agents(self.socket)
        segment = next((self.folder / "store/resize").glob("v*2/*.segment"))
        os.truncate(segment, 8192)
        self.assertEqual(self.load((64, 1000), (3, 1)), "good version=1")

    def test_many_regions_and_one_that_is_large_in_a_pool_that_is_small(self):
        self.environment["BACKSTAY_POOL_SIZE_MIB"] = "4"
        self.save((64, 1000), (2, 1), "many")
        self.assertEqual(self.load((64, 1000), (3, 1), "many"), "good version=1")

    def test_an_agent_that_dies_at_any_moment_is_replaced(self):
        choose = random.Random(SEED)
        self.save((64, 1000), (2, 2))
        # 1 to 3: before the first, second and third rank learns the other number; then in the
        # fetches.
        for passed in (1, 2, 3, *sorted(choose.sample(range(4, 24), 3))):
            with self.subTest(f"replay with BACKSTAY_TEST_SEED={SEED}", passed=passed):
                agent = self.start_agent(f"restart.answer=kill@{passed}")
                self.assertEqual(self.load((64, 1000), (3, 1)), "good version=1")
                self.assertEqual(agent.wait(60), -signal.SIGKILL,
                                 "it was there until the failpoint")

    def test_ranks_that_die_leave_the_version_as_it_was(self):
        self.save((64, 1000), (2, 2))
        for moment in ("verify", "take"):
            with self.subTest(moment):
                self.environment["BACKSTAY_FAILPOINT"] = f"redistribute.{moment}=kill"
                self.run_blocks("load", (64, 1000), (3, 1), returns=137)
                del self.environment["BACKSTAY_FAILPOINT"]
                self.assertEqual(self.load((64, 1000), (3, 1)), "good version=1")

    def test_what_cannot_be_known_is_refused(self):
        for flaw, because in {
            "halo": "without its halo",
            "hole": "does not cover",
            "differ": "no place in a global array",
            "file": "files belong to their ranks",
        }.items():
            with self.subTest(flaw):
                self.environment["BACKSTAY_JOB"] = flaw
                self.save((12, 10), (2, 2), flaw)
                self.refused((12, 10), (1, 1), because)

    def test_another_global_shape_is_refused(self):
        self.save((12, 10), (2, 2))
        self.refused((12, 11), (1, 1), "same type and global shape")


if __name__ == "__main__":
    print(f"BACKSTAY_TEST_SEED={SEED}")
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
