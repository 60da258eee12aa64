#!/usr/bin/env python3
"""Takes one idea out of src/tree at a time and sees the simulation find it.

Usage: mutants.py ROOT CXX LIBRARY... . LIBRARY: the static libraries that sim_play is linked from,
sim_world first. A mutated source is compiled alone and linked in front of them, so that it takes
the place of the original. Standard library only.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

SEEDS = 300

# (what is broken, file, text, text in its place)
MUTANTS = [
    ("the last member need not report", "floors.cc",
     "members_(NodeSet::range(0, nodes))",
     "members_(NodeSet::range(0, nodes > 1 ? nodes - 1 : nodes))"),
    ("nodes are counted, not collected", "floors.cc",
     "joined.nodes.add(nodes);", "joined.nodes.add(nodes);\n    reported += nodes.count();",
     "Part joined{UINT64_MAX, {}};", "Part joined{UINT64_MAX, {}};\n  std::uint64_t reported = 0;",
     "at.joined.nodes.contains(members_)", "reported >= members_.count()"),
    ("the largest value instead of the least", "floors.cc",
     "std::min(joined.lowest, lowest)",
     "joined.nodes.empty() ? lowest : std::max(joined.lowest, lowest)"),
    ("recorded before it is on the disk", "commit.cc",
     "record.push_back({version, level});",
     "record.push_back({version, level});\n    recorded(version, level);"),
    ("announced when decided", "commit.cc",
     "record.push_back({version, level});",
     "record.push_back({version, level});\n    announce.push_back({version, level});"),
    ("what is held of another run counts", "commit.cc",
     "remembered.version.run == run_ && ", ""),
    ("the disk's records are forgotten", "commit.cc",
     "if (remembered.recorded >= Level::local) {", "if (false) {"),
    ("what the disk holds is forgotten", "commit.cc",
     "remembered.version.run == run_ && remembered.held >= Level::local", "false"),
    ("a record does not decide", "commit.cc",
     "floors_.raise_floor(key_of(Kind::held, remembered.version), value_of(remembered.recorded));",
     ""),
    ("every node finds a place", "links.cc",
     "return static_cast<std::size_t>(strangers) < places;", "return true;"),
    ("a child that joins again keeps its old link's state", "links.cc",
     "  drop_child(node);\n  Child& child = children_[node];", "  Child& child = children_[node];"),
    ("silent children stay", "links.cc",
     "++child.silent_ticks > settings_.lost_ticks", "false"),
    ("no node goes home", "tree.cc",
     "parent_ && !at_home() && !attempt_ && home_in_ticks_-- == 0", "false"),
    ("a lost fact is not sent again", "tree.cc",
     "    child.facts_sent = child.facts_confirmed;\n", ""),
    ("no node leaves a parent that is silent, or a root that is", "links.cc",
     "path_age_ > settings_.age_ticks_max", "false",
     "++parent_->silent_ticks > settings_.lost_ticks", "false"),
    ("an older fact replaces a later one", "facts.cc",
     "if (std::tie(fact.incarnation, fact.sequence) <= std::tie(mine->incarnation, "
     "mine->sequence)) {", "if (false) {"),
]


def build_and_play(root: Path, compiler: str, libraries: list[str], source: Path | None,
                   folder: Path) -> tuple[int, str]:
    program = folder / "play"
    sources = [str(root / "tests/sim/play.cc")] + ([str(source)] if source else [])
    subprocess.run([compiler, "-std=c++20", "-O1", f"-I{root}/src", f"-I{root}/tests", *sources,
                    *libraries,
                    "-lxxhash", "-lfmt", "-o", str(program)], check=True)
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
            text = (root / "src/tree" / name).read_text()
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
