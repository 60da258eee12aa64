"""Every benchmark runs at a tiny size and prints JSON with all its keys."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv.pop(1))
RATIO_KEYS = {"ours", "limit", "value", "target", "reached"}


class Benchmarks(unittest.TestCase):
    def setUp(self):
        # On the build's disk: a temporary file system may have no O_DIRECT.
        self.folder = tempfile.TemporaryDirectory(dir=BIN)
        self.addCleanup(self.folder.cleanup)

    def run_one(self, name, *arguments):
        command = [BIN / name, "--json", "--dir", self.folder.name + "/" + name, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual(result["benchmark"], name)
        return result

    def can_mount(self):
        mounts = (BIN.parent / "src" / "capture" / "mount" / "backstay-mount").exists()
        usable = os.access("/dev/fuse", os.R_OK | os.W_OK) and shutil.which("fusermount3")
        return bool(mounts and usable)

    def check_samples(self, result, keys, count):
        for key in keys:
            self.assertGreater(result[key], 0, key)
            self.assertEqual(len(result["samples"][key]), count, key)

    def test_checkpoint(self):
        result = self.run_one("checkpoint", "--ranks", "2", "--mib", "5", "--repetitions", "2",
                              "--compare", "3x1")
        self.check_samples(result, ("blocked_s", "local_s", "restart_pool_s", "restart_cold_s",
                                    "raw_write_s", "raw_read_s"), 2)
        self.check_samples(result, ("memcpy_s",), 4)
        self.assertEqual(result["bytes"], 2 * 5 << 20)
        self.assertEqual(set(result["ratios"]), {
            "blocked_over_memcpy", "local_over_raw_write", "restart_cold_over_raw_read",
            "restart_pool_over_memcpy", "blocked_3x1_over_2x5"})
        for ratio in result["ratios"].values():
            self.assertEqual(set(ratio), RATIO_KEYS)
        self.assertTrue(result["agent"]["reached"], result["agent"])
        self.check_samples(result["compare"], ("blocked_s",), 2)

    def test_write_pattern(self):
        result = self.run_one("write_pattern", "--processes", "2", "--shrink", "20",
                              "--repetitions", "1")
        captured = {"preload", *(["mount"] if self.can_mount() else [])}
        self.assertEqual(set(result["ways"]), captured | {"direct", "aggregate", "pool",
                                                          "pool_paper"})
        self.assertEqual(set(result["ratios"]), {f"{way}_over_pool" for way in captured})
        for ratio in result["ratios"].values():
            self.assertEqual(set(ratio), RATIO_KEYS)
            self.assertEqual(ratio["target"], 1.25)
        for way in result["ways"].values():
            self.check_samples(way, ("blocked_s", "on_disk_s"), 1)
            self.assertIn("write_requests", way)
            self.assertIn("memory_bytes", way)
            self.assertGreater(way["speedup"], 0)
        self.assertGreater(result["ways"]["aggregate"]["memory_bytes"], 0)

    def test_pattern_sweeps(self):
        script = pathlib.Path(__file__).resolve().parents[2] / "bench" / "pattern_sweeps"
        command = [script, "--quick", "--json", "--build", BIN.parent, "--out",
                   self.folder.name + "/sweeps.json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        captured = {"preload", *(["mount"] if self.can_mount() else [])}
        for row in result["pools"]:
            self.assertEqual(set(row["ways"]), captured | {"direct", "pool"})
            self.assertEqual(row["ways"]["pool"]["memory_bytes"], row["pool_mib"] << 20)
        for row in result["thresholds"]:
            self.assertGreater(row["ways"]["aggregate"]["memory_bytes"], 0)
        for way in result["run_time"].values():
            self.check_samples(way, ("blocked_s", "program_s", "run_s"), 1)
            self.assertGreaterEqual(way["run_s"], way["program_s"])
        if "throttled" in result["left_out"]:
            self.assertNotIn("throttled", result)
            return
        for way in result["throttled"].values():
            self.assertGreater(way["write_requests"], 0)

    def test_many_files(self):
        script = pathlib.Path(__file__).resolve().parents[2] / "bench" / "many_files"
        command = [script, "--quick", "--json", "--build", BIN.parent, "--out",
                   self.folder.name + "/many.json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        ways = json.loads(done.stdout)["ways"]
        self.assertEqual(set(ways), {"native", "synced", "captured"})
        for way in ways.values():
            self.assertGreaterEqual(way["safe_s"], way["program_s"])

    def test_creates(self):
        result = self.run_one("creates", "--processes", "2", "--files", "20", "--mib", "1",
                              "--repetitions", "1")
        self.check_samples(result, [f"{what}_per_s" for what in (
            "files", "streams", "files_synced", "streams_synced", "own_file_bytes",
            "shared_file_bytes", "stream_bytes", "disk_bytes")], 1)
        self.assertGreater(result["streams_over_files"], 0)

    def test_files(self):
        result = self.run_one("files", "--mib", "2", "--repetitions", "2")
        shapes = [f"{kib}k_x{processes}" for kib in (4, 128, 1024) for processes in (1, 4)]
        for shape in shapes:
            for way in ("tmpfs", "preload", "pool", "native"):
                self.check_samples(result, (f"{way}_{shape}_s", f"{way}_{shape}_close_s"), 2)
        ways = ["preload", "pool"]
        if self.can_mount():
            ways.append("mount")
            for shape in shapes:
                for way in ("mount", "through"):
                    self.check_samples(result, (f"{way}_{shape}_s", f"{way}_{shape}_close_s"), 2)
        names = [f"{way}_over_tmpfs" for way in ways] + ["read_over_memcpy", "local_over_native"]
        self.assertEqual(set(result["ratios"]), {f"{name}_{shape}" for shape in shapes
                                                 for name in names})
        # A captured file comes to the disk at close, and so close takes its time.
        self.assertGreater(result["preload_1024k_x1_close_s"], result["tmpfs_1024k_x1_close_s"])

    def test_overhead(self):
        result = self.run_one("overhead", "--copy-mib", "8", "--repetitions", "2", "--steps", "50",
                              "--min-time", "0.01")
        for part in ("due", "memcpy", "update_copy", "stream_copy", "checksum", "manifest_encode",
                     "manifest_decode", "message_encode", "message_decode"):
            self.assertGreater(result[part + "_ns"], 0, part)
        self.check_samples(result, ("with_due_s", "without_due_s"), 2)
        self.assertGreaterEqual(result["agent_cpu_share"], 0)

    @unittest.skipUnless((BIN / "parity").exists(), "built without ISA-L")
    def test_parity(self):
        result = self.run_one("parity", "--block-mib", "1", "--slice-kib", "100", "--repetitions",
                              "2")
        for shape in ("3_1", "2_2", "8_2"):
            self.check_samples(result, [f"{what}_{shape}_s" for what in (
                "encode", "encode_in_turn", "isal", "rebuild")], 2)
            self.assertEqual(set(result["ratios"][f"encode_{shape}_over_isal"]), RATIO_KEYS)

    def test_transparent(self):
        result = self.run_one("transparent", "--mib", "16", "--repetitions", "2")
        self.check_samples(result, ("stopped_s", "restart_pool_s", "local_s", "raw_write_s",
                                    "restart_cold_s", "raw_read_s", "raw_read_new_s"), 2)
        for ratio in result["ratios"].values():
            self.assertEqual(set(ratio), RATIO_KEYS)

    def test_net(self):
        result = self.run_one("net", "--mib", "32", "--repetitions", "2")
        self.check_samples(result, ("stream_s", "tcp_s"), 2)
        self.assertLessEqual({"tcp_over_stream"}, set(result["ratios"]))
        for ratio in result["ratios"].values():
            self.assertEqual(set(ratio), RATIO_KEYS)

    @unittest.skipUnless(shutil.which("mpirun.openmpi") or shutil.which("mpiexec.mpich"), "no MPI")
    def test_unchanged_programs(self):
        script = pathlib.Path(__file__).resolve().parents[2] / "bench" / "unchanged"
        command = [script, "--quick", "--json", "--build", BIN.parent, "--dir",
                   self.folder.name + "/unchanged"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for case in json.loads(done.stdout)["cases"]:
            for key in ("native_s", "watched_s", "start_s", "cut_s", "copy_s", "bytes", "local_s",
                        "restart_s", "disk_bytes_per_s"):
                self.assertGreater(case[key], 0, (key, case["launcher"]))

    @unittest.skipUnless(shutil.which("mpirun.openmpi") or shutil.which("mpiexec.mpich"), "no MPI")
    def test_what_mpi_calls_cost(self):
        script = pathlib.Path(__file__).resolve().parents[2] / "bench" / "mpi_calls"
        command = [script, "--quick", "--json", "--build", BIN.parent]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for case in json.loads(done.stdout)["launchers"].values():
            self.assertLessEqual({"comm_rank_ns", "latency_ns", "memory_mib", "start_s"},
                                 set(case["ratios"]))
            for of in case["samples"].values():
                self.assertTrue(all(value > 0 for one in of.values() for value in one), of)

    def test_wrong_agent_is_reported(self):
        command = [BIN / "checkpoint", "--agent", "/nonexistent", "--mib", "1", "--dir",
                   self.folder.name + "/none"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("/nonexistent", done.stderr)


if __name__ == "__main__":
    unittest.main()
