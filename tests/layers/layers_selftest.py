#!/usr/bin/env python3
"""Proves that check_layers.py can fail: each rule is broken once in a small tree and must be named.

Usage: layers_selftest.py ROOT. Takes the real table from ROOT, so that the test also fails when the
page loses a rule. Standard library only.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import check_layers  # noqa: E402

FOLDERS = ("base", "format", "wire", "io", "tier", "client", "capture", "bin")
ROOMS = ("memory", "version", "disk", "group", "checkpoint", "redundancy", "restart", "drain", "job", "server")


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


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
    write(root, "src/agent/disk/a.cc", '#include "agent/disk/disk.h"\n#include "agent/version/version.h"\n#include "tier/tier.h"\n')
    write(root, "src/bin/run/CMakeLists.txt", "# run: purpose.\n")
    for room in ("mpi", "image"):
        write(root, f"src/capture/{room}/CMakeLists.txt", f"# {room}: purpose.\n")
        write(root, f"src/capture/{room}/{room}.h", "")
    write(root, "src/capture/mpi/a.cc", '#include "client/client.h"\n#include "backstay/backstay.h"\n')
    write(root, "python/backstay/format/reader.py", "import os\nimport numpy\n")
    write(root, "examples/heat/heat.c", '#include <backstay/backstay.h>\n')


# (file to add, its text, words that the one message must hold)
BAD = [
    ("src/base/x.cc", '#include "io/io.h"\n', "base may not include io"),
    ("src/format/x.cc", '#include "io/io.h"\n', "format may not include io"),
    ("src/wire/x.h", '#  include  "agent/job/job.h"\n', "wire may not include agent/job"),
    ("src/tier/x.cc", '#include "format/format.h"\n', "tier may not include format"),
    ("src/client/x.cc", '#include "../agent/job/job.h"\n', "client may not include agent/job"),
    ("src/agent/disk/x.cc", "#include <client/client.h>\n", "agent/disk may not include client"),
    ("src/agent/version/x.h", '#include "agent/disk/disk.h"\n', "agent/version may not include agent/disk"),
    ("src/agent/restart/x.cc", '#include "agent/redundancy/redundancy.h"\n', "agent/restart may not include agent/redundancy"),
    ("src/agent/x.cc", "", "agent has no row"),
    ("src/bin/x.cc", '#include "capture/capture.h"\n', "bin may not include capture"),
    ("src/bin/run/x.cc", '#include "bin/bin.h"\n', "bin/run may not include bin"),
    ("src/capture/mpi/x.cc", '#include "capture/image/image.h"\n', "capture/mpi may not include capture/image"),
    ("src/capture/image/x.cc", '#include "client/client.h"\n', "capture/image may not include client"),
    ("src/capture/novel/CMakeLists.txt", "# novel: purpose.\n", "has no row"),
    ("src/base/x.cc", '#include "fmt/core.h"\n', "no file of this repository"),
    ("include/backstay/x.h", '#include "base/base.h"\n', "public may not include base"),
    ("examples/heat/x.c", '#include "client/client.h"\n', "examples may not include client"),
    ("python/module.c", '#include "client/client.h"\n', "python may not include client"),
    ("python/backstay/format/x.py", "import backstay.session\n", "may not import backstay.session"),
    ("python/backstay/format/x.py", "from pandas import DataFrame\n", "may not import pandas"),
    ("src/base/long.cc", "\n" * 601, "601 lines"),
    ("src/base/utils/x.h", "", "a folder's name says its purpose"),
    ("src/base/CMakeLists.txt", "add_library(base)\n", "first line must be"),
    ("src/novel/CMakeLists.txt", "# novel: purpose.\n", "has no row"),
    ("src/agent/novel/CMakeLists.txt", "# novel: purpose.\n", "has no row"),
    ("src/agent/disk/CMakeLists.txt", "add_library(disk)\n", "first line must be"),
]


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
    print("\n".join(failures) if failures else f"selftest: {len(bad)} broken rules were all named")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
