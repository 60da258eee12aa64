#!/usr/bin/env python3
"""Proves that check_layers.py can fail: each rule is broken once in a small tree and must be named.

Usage: layers_selftest.py ROOT. Takes the real table from ROOT, so that the test also fails when the
page loses a rule. Standard library only.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import check_layers  # noqa: E402

FOLDERS = ("base", "format", "wire", "io", "tier", "client", "capture", "bin")
ROOMS = (
    *("memory", "version", "disk", "group", "checkpoint"),
    *("redundancy", "restart", "drain", "job", "server"),
)


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def includes(*names: str) -> str:
    return "".join(f'#include "{name}.h"\n' for name in names)


def good_tree(root: Path, page: str) -> None:
    write(root, "docs/architecture.md", page)
    write(root, "include/backstay/backstay.h", "")
    for folder in FOLDERS:
        write(root, f"src/{folder}/CMakeLists.txt", f"# {folder}: purpose.\n")
        write(root, f"src/{folder}/{folder}.h", "#include <vector>\n")
    write(root, "src/agent/CMakeLists.txt", "# agent: purpose.\n")
    for room in ROOMS:
        write(root, f"src/agent/{room}/CMakeLists.txt", f"# {room}: purpose.\n")
        write(root, f"src/agent/{room}/{room}.h", "")
    allowed = includes("agent/disk/disk", "agent/version/version", "tier/tier")
    write(root, "src/agent/disk/a.cc", allowed)
    write(root, "src/bin/run/CMakeLists.txt", "# run: purpose.\n")
    for room in ("mpi", "image"):
        write(root, f"src/capture/{room}/CMakeLists.txt", f"# {room}: purpose.\n")
        write(root, f"src/capture/{room}/{room}.h", "")
    write(root, "src/capture/mpi/a.cc", includes("client/client", "backstay/backstay"))
    write(root, "python/backstay/format/reader.py", "import os\nimport numpy\n")
    write(root, "examples/heat/heat.c", '#include <backstay/backstay.h>\n')


NARROW = ("src/base/x.h", "tests/x.py", "tests/x/CMakeLists.txt", "cmake/x.cmake", "Makefile")
LIST = check_layers.sizes.LIST
long_line = f"#!{'x' * 99}\n"


def function(head: str, arguments: str = "()") -> str:
    """46 lines, one too many."""
    result = "void " if arguments else ""
    return f"{result}{head}{arguments} {{\n" + "  ;\n" * 44 + "}\n"


def wide_class(head: str, functions: int) -> str:
    shown = "".join(f"  int f{number}() const;\n" for number in range(functions))
    return f"{head}{shown} private:\n  int hidden() const;\n}};\n"


def wide_python_class(functions: int) -> str:
    shown = "".join(f"    def f{number}(self): pass\n" for number in range(functions))
    return f"class X:\n{shown}    def _hidden(self): pass\n"


# (file to add, its text, words that the one message must hold)
BAD = [
    ("src/base/x.cc", '#include "io/io.h"\n', "base may not include io"),
    ("src/format/x.cc", '#include "io/io.h"\n', "format may not include io"),
    ("src/wire/x.h", '#  include  "agent/job/job.h"\n', "wire may not include agent/job"),
    ("src/tier/x.cc", '#include "format/format.h"\n', "tier may not include format"),
    ("src/client/x.cc", '#include "../agent/job/job.h"\n', "client may not include agent/job"),
    ("src/agent/disk/x.cc", "#include <client/client.h>\n", "agent/disk may not include client"),
    ("src/agent/version/x.h", includes("agent/disk/disk"), "version may not include agent/disk"),
    ("src/agent/restart/x.cc", includes("agent/job/job"), "restart may not include agent/job"),
    ("src/agent/drain/x.cc", includes("agent/restart/restart"), "may not include agent/restart"),
    ("src/agent/x.cc", "", "agent has no row"),
    ("src/bin/x.cc", '#include "capture/capture.h"\n', "bin may not include capture"),
    ("src/bin/run/x.cc", '#include "bin/bin.h"\n', "bin/run may not include bin"),
    ("src/capture/mpi/x.cc", includes("capture/image/image"),
     "capture/mpi may not include capture/image"),
    ("src/capture/image/x.cc", includes("client/client"), "capture/image may not include client"),
    ("src/capture/novel/CMakeLists.txt", "# novel: purpose.\n", "has no row"),
    ("src/base/x.cc", '#include "fmt/core.h"\n', "no file of this repository"),
    ("include/backstay/x.h", '#include "base/base.h"\n', "public may not include base"),
    ("examples/heat/x.c", '#include "client/client.h"\n', "examples may not include client"),
    ("python/module.c", '#include "client/client.h"\n', "python may not include client"),
    ("python/backstay/format/x.py", "import backstay.session\n", "may not import backstay.session"),
    ("python/backstay/format/x.py", "from pandas import DataFrame\n", "may not import pandas"),
    ("src/base/long.cc", "\n" * 451, "long.cc: 451 lines; at most 450"),
    ("python/backstay/long.py", "\n" * 451, "long.py: 451 lines; at most 450"),
    ("src/base/x.cc", function("f"), "x.cc:f: 46 lines; at most 45"),
    ("src/base/x.h", f"struct S {{\n{function('f')}}};\n", "x.h:f: 46 lines; at most 45"),
    ("tests/x_test.cc", function("TEST(Suite, Name)", ""), "x_test.cc:Suite.Name: 46 lines"),
    ("python/x.py", "def f():\n" + "    f()\n" * 45, "x.py:f: 46 lines; at most 45"),
    ("scripts/x", "#!/usr/bin/env python3\ndef f():\n" + "    f()\n" * 45, "x:f: 46 lines"),
    ("src/base/x.h", wide_class("class X {\n public:\n", 21), "x.h:X: 21 public functions"),
    ("src/base/x.h", wide_class("struct X {\n", 21), "x.h:X: 21 public functions; at most 20"),
    ("python/x.py", wide_python_class(21), "x.py:X: 21 public functions; at most 20"),
    *((name, long_line, f"{name}: 1 lines over 100 columns") for name in NARROW),
    (LIST, "file src/base/base.h 500\n", "base.h fits now; remove the line"),
    ("src/base/utils/x.h", "", "a folder's name says its purpose"),
    ("src/base/CMakeLists.txt", "add_library(base)\n", "first line must be"),
    ("src/novel/CMakeLists.txt", "# novel: purpose.\n", "has no row"),
    ("src/agent/novel/CMakeLists.txt", "# novel: purpose.\n", "has no row"),
    ("src/agent/disk/CMakeLists.txt", "add_library(disk)\n", "first line must be"),
]


# (what the list says of the file that follows, the file, its text, words of the message or "")
LISTED = [
    ("file src/base/x.h 500", "src/base/x.h", "\n" * 500, ""),
    ("file src/base/x.h 500", "src/base/x.h", "\n" * 501, "501 lines; at most 500"),
    ("file src/base/x.h 500", "src/base/x.h", "\n" * 499, "can be lowered to 499"),
    ("function src/base/x.cc:f 46", "src/base/x.cc", function("f"), ""),
    ("function src/base/x.cc:f 47", "src/base/x.cc", function("f"), "can be lowered to 46"),
    ("function src/base/x.cc:f table", "src/base/x.cc", function("f"), ""),
    ("class src/base/x.h:X 22", "src/base/x.h", wide_class("struct X {\n", 22), ""),
    ("class src/base/x.h:X 23", "src/base/x.h", wide_class("struct X {\n", 22), "lowered to 22"),
    ("columns src/base/x.h 2", "src/base/x.h", long_line * 2, ""),
    ("columns src/base/x.h 2", "src/base/x.h", long_line, "can be lowered to 1"),
]


def list_failures(scratch: Path, page: str):
    """A size that is listed may stay and shrink; --lower writes the list that then passes."""
    for number, (line, name, text, words) in enumerate(LISTED):
        root = scratch / f"listed{number}"
        good_tree(root, page)
        write(root, name, text)
        write(root, LIST, f"# why\n{line}\n")
        found = check_layers.violations(root)
        if len(found) != (words != "") or (found and words not in found[0]):
            yield f"{line}: expected '{words}', got {found}"
        check_layers.sizes.lower(root)
        if "at most" not in words and (found := check_layers.violations(root)):
            yield f"{line}: still refused after --lower: {found}"


def shape_failures(root: Path):
    """Two modules that include each other, a writer and a checker more than the list allows."""
    write(root, "src/store/a.h", includes("store/b") + "class A { void f(); };\n")
    write(root, "src/store/b.h", includes("store/a"))
    write(root, "src/store/b.cc", "tier.create(names.data, 0);\nif (sum == chunk.checksum) {}\n")
    write(root, "tests/layers/shape.txt", "0 circles of modules\n0 writers of nodes' files\n"
          "0 checkers of chunks\n2 functions of the largest class\n")
    done = subprocess.run([Path(__file__).resolve().parents[2] / "scripts/shape", root, "--held"],
                          capture_output=True, text=True)
    said = done.stdout.splitlines()
    if done.returncode != 1 or len(said) != 4 or "lower it" not in said[3]:
        yield f"scripts/shape --held: expected four messages, got {said}"


def main() -> int:
    page = (Path(sys.argv[1]) / "docs" / "architecture.md").read_text()
    failures = []
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch).resolve() / "good"
        good_tree(root, page)
        failures += [f"a good tree was refused: {text}" for text in check_layers.violations(root)]
        upward = page.replace("control page | base |", "control page | base, agent/disk |")
        bad = [*BAD, ("docs/architecture.md", upward, "agent/memory may include agent/disk")]
        for number, (name, text, words) in enumerate(bad):
            root = Path(scratch).resolve() / str(number)
            good_tree(root, page)
            write(root, name, text)
            found = check_layers.violations(root)
            if len(found) != 1 or words not in found[0]:
                failures.append(f"{name}: expected one message with '{words}', got {found}")
        failures += list_failures(Path(scratch).resolve(), page)
        failures += shape_failures(Path(scratch).resolve() / "shape")
    good = f"selftest: {len(bad) + len(LISTED)} broken rules were all named"
    print("\n".join(failures) if failures else good)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
