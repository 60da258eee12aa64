#!/usr/bin/env python3
"""Takes one idea out of src/agent/cut or src/cut at a time and sees random runs find it.

Usage: mutants.py ROOT CXX LIBRARY... . LIBRARY: the static libraries that carried_cut_play is
linked from, carried_cut_world first, without those of src/agent/cut and src/cut, whose sources are
compiled here. Standard library only.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

SEEDS = 150

# (what is broken, file, text, text in its place, further pairs). That a version is held back, and
# given up with its cut, is too rare for random runs: relay_test and job_cut_test see to it.
MUTANTS = [
    ("a joined report has the greatest clock only", "src/cut/report.cc",
     "all.least = std::min(all.least, other.least);",
     "all.least = std::max(all.least, other.least);"),
    ("a joined report has the least clock only", "src/cut/report.cc",
     "all.most = std::max(all.most, other.most);", "all.most = std::min(all.most, other.most);"),
    ("the newest version of others is not asked for", "src/cut/report.cc",
     "  all.newest = std::max(all.newest, other.newest);\n", ""),
    ("an agent whose links have changed goes on", "src/agent/cut/cut_relay.cc",
     "  fail(Code::again, fmt::format(\"the agents around",
     "  if (false) fail(Code::again, fmt::format(\"the agents around"),
    ("the parent is not told of an end", "src/agent/cut/cut_relay.cc",
     "  refuse(cut, code, why);\n", "  if (lead_) refuse(cut, code, why);\n"),
    ("those below are not told of an end", "src/agent/cut/cut_relay.cc",
     "  for (const NodeId child : links_.children) out_.emplace_back(TellAgent{child, over});\n",
     ""),
    ("a cut that has ended goes on with the next order", "src/agent/cut/cut_relay.cc",
     "begins ? !begin(order) : !is_of_now(order.cut)", "begins && !begin(order)"),
    ("a cut begins without all ranks", "src/agent/cut/cut_relay.cc",
     "if (ranks_.size() == facts_.local_ranks) return true;", "return true;"),
    ("a rank that has died is no matter", "src/agent/cut/cut_relay.cc",
     "  fail(why.code(), why.message());\n", ""),
    ("a request is passed on once", "src/agent/cut/cut_relay.cc",
     "  ask_sent_ = false;\n  child_parts_", "  child_parts_"),
    ("a refusal stops at the next agent", "src/agent/cut/cut_relay_messages.cc",
     "if (!is_child(from) || !is_of_now(refused.cut)) return;", "return;"),
    ("orders of strangers count", "src/agent/cut/cut_relay_messages.cc",
     "  if (!is_parent(from)) return;\n  auto whole", "  auto whole",
     "  if (is_parent(from)) end(over);", "  end(over);",
     "  fail(Code::again, fmt::format(\"the agents around",
     "  if (false) fail(Code::again, fmt::format(\"the agents around"),
    ("a cut that was given up is not tried again", "src/agent/cut/cut_lead.cc",
     "wanted_ = code == Code::again || asked_again_;", "wanted_ = asked_again_;"),
    ("a cut begins while agents are missing, and nothing is said", "src/agent/cut/cut_lead.cc",
     "    if (missing.empty()) {\n", "    if (true) {\n"),
    ("cuts have the same number", "src/agent/cut/cut_lead.cc",
     "cut_.emplace(ranks_, last_++);", "cut_.emplace(ranks_, last_);"),
]


def sources_of(root: Path) -> list[Path]:
    folders = [root / "src/agent/cut", root / "src/cut"]
    return [path for folder in folders for path in sorted(folder.glob("*.cc"))]


def build_and_play(root: Path, compiler: str, objects: list[Path], libraries: list[str],
                   folder: Path) -> tuple[int, str]:
    program = folder / "play"
    subprocess.run([compiler, *map(str, objects), *libraries, "-lxxhash", "-lfmt", "-lspdlog", "-o",
                    str(program)], check=True)
    try:
        done = subprocess.run([str(program), "1", str(SEEDS)], capture_output=True, text=True,
                              check=False, timeout=600)
    except subprocess.TimeoutExpired:
        return 1, "it does not come to an end"
    lines = (done.stdout + done.stderr).strip().splitlines()
    return done.returncode, lines[0] if lines else f"exit {done.returncode}"


def compile_one(root: Path, compiler: str, source: Path, target: Path) -> Path:
    subprocess.run([compiler, "-std=c++20", "-O1", "-w", f"-I{root}/src", f"-I{root}/tests", "-c",
                    str(source), "-o", str(target)], check=True)
    return target


def main() -> int:
    root, compiler, libraries = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    survived = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        objects = {}
        for source in [*sources_of(root), root / "tests/carried_cut/play.cc"]:
            objects[source] = compile_one(root, compiler, source, folder / f"{source.stem}.o")
        code, said = build_and_play(root, compiler, list(objects.values()), libraries, folder)
        if code != 0:
            print(f"the unchanged sources fail: {said}")
            return 1
        for what, name, *changes in MUTANTS:
            texts = {}
            for old, new in zip(changes[::2], changes[1::2]):
                at = next(path for path in [root / name, *sources_of(root)]
                          if texts.get(path, path.read_text()).count(old) == 1)
                texts[at] = texts.get(at, at.read_text()).replace(old, new)
            mutated = dict(objects)
            for path, text in texts.items():
                changed = folder / f"mutant_{path.name}"
                changed.write_text(text)
                mutated[path] = compile_one(root, compiler, changed, folder / f"m_{path.stem}.o")
            code, said = build_and_play(root, compiler, list(mutated.values()), libraries, folder)
            print(f"{'found' if code != 0 else 'NOT FOUND':9} {what}: {said}", flush=True)
            if code == 0:
                survived.append(what)
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
