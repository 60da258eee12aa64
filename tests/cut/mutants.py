#!/usr/bin/env python3
"""Takes one idea out of src/cut at a time and sees the small programs or random histories find it.

Usage: mutants.py ROOT CXX LIBRARY... . LIBRARY: the static libraries that cut_play is linked from,
cut_world first, without that of src/cut itself, whose sources are compiled here. Standard library
only.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

SEEDS = 1000

# (what is broken, file, text, text in its place)
MUTANTS = [
    ("all collective calls may begin until the program stops", "rank.cc",
     "!(phase_ == Phase::run_on && may_run_on())", "phase_ != Phase::run_on"),
    ("no collective call may begin in a cut", "rank.cc",
     "!(phase_ == Phase::run_on && may_run_on())", "true"),
    ("collective calls may begin again once the program was asked to stop", "rank.cc",
     "!(phase_ == Phase::run_on && may_run_on())", "phase_ == Phase::run_on && !may_run_on()"),
    ("no rank goes on because another one needs it", "rank.cc",
     "  return std::any_of(needs_.begin(), needs_.end(),\n",
     "  if (!needs_.empty()) return false;\n  return std::any_of(needs_.begin(), needs_.end(),\n"),
    ("a rank that is needed does not say what it needs itself", "rank.cc",
     "if (reached) return report;", "if (!is_behind()) return report;"),
    ("a message that waits to be taken is no need", "rank.cc",
     "return waiting.taken < need.count;", "return false;"),
    ("a need counts one message too few", "rank.cc",
     "return waiting.sent <= need.count;", "return waiting.sent < need.count;"),
    ("a receive from any rank needs no other one", "rank.cc",
     "if (need.peer == any_rank) return true;", "if (need.peer == any_rank) return false;"),
    ("a held call is not tried again", "rank.cc",
     "if (may_run_on()) out_.emplace_back(Wake{});", ""),
    ("a rank goes on when its own image is there", "rank.cc",
     "if (!has_image_ || !all_closed_) return;", "if (!has_image_) return;\n  all_closed_ = true;"),
    ("an image counts before all ranks are closed", "rank.cc",
     "report.saved = has_image_ && all_closed_ ? 1 : 0;", "report.saved = has_image_ ? 1 : 0;",
     "  has_image_ = true;\n", "  has_image_ = true;\n  tell();\n"),
    ("orders that come from a lost coordinator count", "rank.cc",
     "  if (alone_) return;\n", ""),
    ("the messages that a rank took in are not told anew", "rank.cc",
     "  ++peers_[from].taken_in;\n  tell();", "  ++peers_[from].taken_in;"),
    ("a process that ends says nothing", "rank.cc",
     "  ended_ = true;\n  tell();", ""),
    ("the coordinator does not wait for the answers to its round", "coordinator.cc",
     "if (all.round < round_) return;", ""),
    ("the coordinator does not wait for all ranks", "coordinator.cc",
     "if (all.ranks < ranks_) return;", "",
     "all.reached == ranks_", "all.reached == all.ranks",
     "all.standing == ranks_", "all.standing == all.ranks"),
    ("messages are not counted", "coordinator.cc",
     "if (all.sent != all.taken_in) return;", ""),
    ("one target a communicator", "coordinator.cc",
     "return target == targets_.end() || target->second < clock.most;",
     "return target == targets_.end();"),
    ("needs are not passed on", "coordinator.cc", "  needs_ = all.needs;\n", "",
     "if (all.needs != needs_) return true;", ""),
    ("needs that have passed stay", "coordinator.cc",
     "if (all.needs != needs_) return true;",
     "if (!all.needs.empty() && all.needs != needs_) return true;"),
    ("ranks go on before all are closed", "coordinator.cc",
     "phase_ == Phase::closing && all.closed == ranks_", "phase_ == Phase::closing"),
    ("saved when one rank has saved", "coordinator.cc",
     "all.saved == ranks_", "all.saved > 0"),
    ("a request during a cut begins another one", "coordinator.cc",
     "void Coordinator::request() {\n  if (phase_ != Phase::idle) return;",
     "void Coordinator::request() {"),
    ("ranks are not told that a cut is given up", "coordinator.cc",
     "  order(Order::What::give_up);\n", ""),
    ("the last report of a rank is forgotten", "report.cc",
     "  last_[child] = report;", "  if (last_.count(child) == 0) last_[child] = report;"),
    ("reports of an earlier cut replace later ones", "report.cc",
     "  if (report.cut < cut_) return;\n", ""),
    ("the reports of an earlier cut stay", "report.cc",
     "  if (report.cut > cut_) last_.clear();\n", ""),
    ("the greatest clock of all, not the least", "report.cc",
     "all.least = std::min(all.least, other.least);",
     "all.least = std::max(all.least, other.least);"),
]


def build_and_play(root: Path, compiler: str, libraries: list[str], mutant: Path | None,
                   folder: Path) -> tuple[int, str]:
    program = folder / "play"
    name = mutant.name if mutant else ""
    sources = [path for path in sorted((root / "src/cut").glob("*.cc")) if path.name != name]
    sources += [root / "tests/cut/play.cc"] + ([mutant] if mutant else [])
    subprocess.run([compiler, "-std=c++20", "-O1", f"-I{root}/src", f"-I{root}/tests", *sources,
                    *libraries, "-lxxhash", "-lfmt", "-o", str(program)], check=True)
    done = subprocess.run([str(program), "1", str(SEEDS)], capture_output=True, text=True,
                          check=False)
    lines = (done.stdout + done.stderr).strip().splitlines()
    return done.returncode, lines[0] if lines else ""


def main() -> int:
    root, compiler, libraries = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    survived = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        code, said = build_and_play(root, compiler, libraries, None, folder)
        if code != 0:
            print(f"the unchanged sources fail: {said}")
            return 1
        for what, name, *changes in MUTANTS:
            text = (root / "src/cut" / name).read_text()
            for old, new in zip(changes[::2], changes[1::2]):
                assert text.count(old) == 1, f"{name} does not hold once: {old}"
                text = text.replace(old, new)
            (folder / name).write_text(text)
            code, said = build_and_play(root, compiler, libraries, folder / name, folder)
            print(f"{'found' if code != 0 else 'NOT FOUND':9} {what}: {said}", flush=True)
            if code == 0:
                survived.append(what)
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
