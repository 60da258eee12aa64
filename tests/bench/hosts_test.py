"""The benchmarks over several hosts run at tiny sizes, and their JSON and the page have what they
should.
"""

import copy
import json
import pathlib
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))
from hosts import (blocked, documents, intervals, mini, replication, restarts,  # noqa: E402
                   strategies)

RATIO_KEYS = {"ours", "limit", "value", "target", "at_least", "reached"}
PARTS = {"replication": replication, "blocked": blocked, "restart": restarts}


def run(name, *arguments):
    return subprocess.run([ROOT / "bench" / name, "--build", BUILD, *arguments],
                          capture_output=True, text=True, timeout=200, check=False)


class Hosts(unittest.TestCase):
    def check_samples(self, part, keys):
        for key in keys:
            self.assertGreater(part[key], 0, key)
            self.assertLessEqual(min(part["samples"][key]), part[key], key)
            self.assertLessEqual(part[key], max(part["samples"][key]), key)

    @unittest.skipIf(mini.what_is_missing(BUILD), "no cluster can be made here")
    def test_cluster(self):
        done = run("cluster", "--quick", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual(result["benchmark"], "cluster")
        self.assertEqual(result["shape"]["rate"], "4gbit")
        self.check_samples(result["replication"],
                           ("stream_1_mb_s", "replicas_1_mb_s", "replicas_1_protected_s",
                            "parity_2_1_mb_s"))
        self.check_samples(result["restart"], ("lost_0_s", "lost_1_s", "lost_2_s", "shared_s"))
        for protection in ("none", "replicas_1", "parity_2_1"):
            self.assertGreater(result["blocked"][f"{protection}_blocked_s"], 0)
            self.assertGreater(result["blocked"][f"{protection}_slow_down"], 0)
        self.assertIn("replicas_1_blocked_again_over_streams", result["blocked"]["ratios"])
        for name, part in PARTS.items():
            self.assertTrue(list(part.rows(result[name])), name)
            for ratio in result[name]["ratios"].values():
                self.assertEqual(set(ratio), RATIO_KEYS)

    @unittest.skipIf(mini.what_is_missing(BUILD), "no cluster can be made here")
    def test_storage_strategies(self):
        done = run("storage_strategies", "--quick", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)["strategies"]
        self.assertEqual(set(result["strategies"]),
                         {"server", "shared", "serialised", "local", "replicas_1", "parity_1_1"})
        for key, one in result["strategies"].items():
            self.assertEqual("second_network" in one, key in ("server", "replicas_1", "parity_1_1"))
            self.check_samples(one["one_network"], ("blocked_s", "safe_s", "base_s"))
            self.assertIn("overhead_percent", one["one_network"])
        self.assertEqual([row[0] for row in strategies.rows(result)][-1], "parity (1, 1)")

    @unittest.skipIf(mini.what_is_missing(BUILD), "no cluster can be made here")
    @unittest.skipUnless(shutil.which("hpcc"), "no hpcc")
    def test_hpcc_saved_again_and_again(self):
        done = run("storage_strategies", "--quick", "--json", "--program", "hpcc", "--size", "200",
                   "--only", "replicas_1", "--only", "unsaved")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)["hpcc"]
        self.check_samples(result["native"], ("run_s",))
        self.assertEqual(set(result["strategies"]), {"unsaved", "replicas_1"})
        [one] = result["strategies"]["replicas_1"]["intervals"].values()
        self.check_samples(one, ("run_s", "versions", "bytes_per_node"))
        self.assertEqual(len(list(intervals.rows(result))), 3)

    @unittest.skipIf(mini.what_is_missing(BUILD), "no cluster can be made here")
    def test_unchanged_programs(self):
        done = run("unchanged", "--quick", "--json", "--hosts", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        [case] = json.loads(done.stdout)["cases"]
        self.assertEqual((case["hosts"], case["ranks"]), (2, 2))
        self.check_samples(case, ("native_s", "watched_s", "cut_s", "copy_s", "bytes", "local_s",
                                  "restart_s", "disk_bytes_per_s"))

    def test_a_whole_run_only_is_written(self):
        done = run("cluster", "--quick", "--write-docs")
        self.assertEqual(done.returncode, 2)
        self.assertIn("full sizes", done.stderr)

    def test_a_setting_must_be_one(self):
        done = run("cluster", "--set", "buffers=3")
        self.assertEqual(done.returncode, 2)
        self.assertIn("protect.buffers=16", done.stderr)

    def test_the_page_has_what_was_measured(self):
        kept = documents.load()
        page = (ROOT / documents.PAGE).read_text()
        self.assertEqual(documents.rendered(page, "cluster", PARTS, kept), page)
        self.assertEqual(documents.rendered(page, "strategies", {"strategies": strategies}, kept),
                         page)
        other = copy.deepcopy(kept)
        other["cluster"]["replication"]["replication"]["replicas_1_protected_s"] = 7.25
        self.assertIn("| 7.25 |", documents.rendered(page, "cluster", PARTS, other))


if __name__ == "__main__":
    unittest.main()
