"""The figures in the documents are those of bench/results/reference.json, and of nothing else."""

import copy
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))
import documents  # noqa: E402

RESULT = json.loads((ROOT / documents.REFERENCE).read_text())
BLOCKS = {"README.md": ["side"], "docs/benchmarks.md": ["measured"],
          "docs/protocol/tree.md": ["join"]}


class Documents(unittest.TestCase):
    def test_figures_are_those_of_the_result(self):
        for name in documents.DOCUMENTS:
            text = (ROOT / name).read_text()
            self.assertEqual([found[2] for found in documents.BLOCK.finditer(text)], BLOCKS[name],
                             name)
            self.assertEqual(documents.rendered(text, RESULT), text,
                             f"{name} differs from {documents.REFERENCE}: bench/run --write-docs "
                             f"writes both")

    def test_another_result_gives_other_figures(self):
        other = copy.deepcopy(RESULT)
        other["benchmarks"]["checkpoint"]["blocked_s"] = 7.25
        for ratio in other["benchmarks"]["checkpoint"]["ratios"].values():
            ratio["ours"] = 7.25
        other["peers"] = {"VeloC": {"what": "VeloC of a test", "blocked_s": 9.5},
                          "DMTCP": {"state": "not installed"}}
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            for name in (*documents.DOCUMENTS, documents.REFERENCE):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, root / name)
            documents.write(root, other)
            readme = (root / "README.md").read_text()
            page = (root / "docs/benchmarks.md").read_text()
            self.assertEqual(json.loads((root / documents.REFERENCE).read_text()), other)
        self.assertIn("7.25 s", readme)
        self.assertIn("| VeloC of a test | 9.50 s |", readme)
        self.assertNotIn("not installed", readme)
        self.assertIn("| 7.2500 |", page)
        self.assertIn("| DMTCP | not installed |", page)

    def test_a_quick_run_is_not_written(self):
        done = subprocess.run([sys.executable, ROOT / "bench/run", "--write-docs", "--quick"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("full size", done.stderr)

    def run_only(self, scratch, name, result):
        """`bench/run --only NAME` of a program that prints this result."""
        program = pathlib.Path(scratch) / "bench" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\ncat <<'end'\n{json.dumps(result)}\nend\n")
        program.chmod(0o755)
        done = subprocess.run([sys.executable, ROOT / "bench/run", "--build", scratch, "--out",
                               pathlib.Path(scratch) / "out", "--only", name],
                              capture_output=True, text=True, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_one_benchmark_prints_its_claims_as_the_whole_table_does(self):
        ratio = {"ours": 0.5, "limit": 0.25, "value": 2.0, "target": 1.25, "reached": False}
        with tempfile.TemporaryDirectory() as scratch:
            said = self.run_only(scratch, "write_pattern", {"ratios": {"preload_over_pool": ratio}})
            bare = self.run_only(scratch, "creates", {"files_per_s": 7})
        self.assertRegex(said, "^claim +ours s +limit s +ratio +target")
        self.assertRegex(said, "captured by the library / regions through the pool +0.5000 +0.2500 "
                               "+2.00 +1.25 +missed by 60.0 %")
        self.assertEqual(json.loads(bare), {"files_per_s": 7})


if __name__ == "__main__":
    unittest.main()
