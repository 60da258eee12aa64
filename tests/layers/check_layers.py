#!/usr/bin/env python3
"""Fails when an include or import goes where docs/architecture.md does not allow it.

Usage: check_layers.py ROOT [--lower]. Prints one line a violation and exits 1 if there is any. The
table of allowed includes is read from the page itself. Also checked: sizes (sizes.py), names of
folders, and that every folder of src says its purpose. --lower shortens the list of what is too
large today and checks then. Standard library only.
"""

import ast
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import sizes  # noqa: E402
from sizes import CODE_ROOTS, code_files  # noqa: E402

FOLDERS_REFUSED = {"common", "utils", "util", "helper", "helpers", "misc", "core"}
SOURCE_SUFFIXES = {".h", ".hpp", ".cc", ".cpp", ".c"}
FORMAT_READER_IMPORTS = {"numpy", "xxhash", "backstay"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def read_table(page: Path) -> dict[str, set[str]]:
    """folder -> folders that it may include, from the rows `| folder | purpose | may include |`."""
    allowed: dict[str, set[str]] = {}
    inside = False
    for line in page.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells[0] == "folder" and cells[-1] == "may include":
            inside = True
        elif inside and not line.startswith("|"):
            break
        elif inside and not set(line) <= set("|- "):
            names = {name.strip() for name in cells[-1].split(",")}
            allowed[cells[0]] = names - {"nothing"}
    return allowed


def table_violations(allowed: dict[str, set[str]]):
    """Arrows go down: a row includes rows above it only, so there is no circle.

    The order of rooms on one floor does not matter.
    """
    seen: set[str] = set()
    for folder, may_include in allowed.items():
        for other in sorted(may_include & (allowed.keys() - seen)):
            may = f"{folder} may include {other}"
            yield f"docs/architecture.md: {may}, which is below it in the table"
        seen.add(folder)


def layer_of(root: Path, path: Path, allowed: dict[str, set[str]]) -> tuple[str, str]:
    """(row of the table, unit). A folder in rooms has a row for each (`agent/disk`).

    The unit of capture is its subfolder, since none may include another.
    """
    parts = path.relative_to(root).parts
    if parts[0] == "include":
        return "public", "public"
    if parts[0] != "src":
        return parts[0], parts[0]
    room = "/".join(parts[1:3])
    if room in allowed:
        return room, room
    unit = "/".join(parts[1:3]) if parts[1] == "capture" and len(parts) > 3 else parts[1]
    return parts[1], unit


def target_of(root: Path, source: Path, name: str, quoted: bool) -> Path | None:
    """The file of ours that an include means, or None for one that is not ours."""
    places = [root / "src", root / "include"]
    if quoted:
        places.insert(0, source.parent)
    for place in places:
        candidate = (place / name).resolve()
        if candidate.is_file() and root in candidate.parents:
            return candidate
    return None


def include_violations(root: Path, allowed: dict[str, set[str]]):
    for source in code_files(root, SOURCE_SUFFIXES):
        layer, unit = layer_of(root, source, allowed)
        if layer in ("tests", "bench", "scripts"):
            continue
        if layer != "public" and layer not in allowed:
            yield f"{source.relative_to(root)}: folder {layer} has no row in docs/architecture.md"
            continue
        for number, line in enumerate(source.read_text(errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            quoted, name = match.group(1) == '"', match.group(2)
            where = f"{source.relative_to(root)}:{number}"
            target = target_of(root, source, name, quoted)
            if target is None:
                if quoted:
                    yield f'{where}: "{name}" is no file of this repository; use <> for others'
                continue
            to_layer, to_unit = layer_of(root, target, allowed)
            if to_unit == unit or (to_layer in allowed.get(layer, ()) and to_layer != layer):
                continue
            yield f"{where}: {unit} may not include {to_unit} ({name})"


def imported_names(tree: ast.AST):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module


def import_violations(root: Path):
    """The format reader needs nothing but numpy, a checksum and the documents."""
    reader = root / "python" / "backstay" / "format"
    for source in sorted(reader.rglob("*.py")):
        for number, name in imported_names(ast.parse(source.read_text())):
            top = name.split(".")[0]
            own = name == "backstay.format" or name.startswith("backstay.format.")
            known = top in sys.stdlib_module_names or top in FORMAT_READER_IMPORTS
            if not known or (top == "backstay" and not own):
                where = f"{source.relative_to(root)}:{number}"
                yield f"{where}: the format reader may not import {name}"


def name_violations(root: Path):
    for top in CODE_ROOTS:
        for folder in sorted((root / top).rglob("*")):
            if folder.is_dir() and folder.name in FOLDERS_REFUSED:
                where = folder.relative_to(root)
                yield f"{where}: a folder's name says its purpose; {folder.name} does not"


def purpose_violations(root: Path, allowed: dict[str, set[str]]):
    # Folders whose rooms have rows; they may have one too.
    houses = {name.split("/")[0] for name in allowed if "/" in name}
    inside = (path for top in ("", *houses) for path in (root / "src" / top).glob("*"))
    for folder in sorted(path for path in inside if path.is_dir()):
        row = folder.relative_to(root / "src").as_posix()
        lists = folder / "CMakeLists.txt"
        first = lists.read_text().splitlines()[:1] if lists.is_file() else []
        if first and first[0].startswith("# filled by the work on"):
            continue  # an empty folder of the skeleton
        if not first or not first[0].startswith(f"# {folder.name}: "):
            yield f'src/{row}/CMakeLists.txt: the first line must be "# {folder.name}: <purpose>"'
        if row not in allowed and row not in houses:
            yield f"src/{row}: has no row in docs/architecture.md"


def violations(root: Path) -> list[str]:
    allowed = read_table(root / "docs" / "architecture.md")
    if len(allowed) < 5:
        return ["docs/architecture.md: the table `| folder | purpose | may include |` is missing"]
    return [
        *table_violations(allowed),
        *include_violations(root, allowed),
        *import_violations(root),
        *name_violations(root),
        *purpose_violations(root, allowed),
        *sizes.violations(root),
    ]


def main() -> int:
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--lower"]):
        print(__doc__, file=sys.stderr)
        return 2
    root = Path(sys.argv[1]).resolve()
    if "--lower" in sys.argv:
        sizes.lower(root)
    found = violations(root)
    print("\n".join(found) if found else "layers: no violation")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
