"""The limits of size that tests/layers holds: functions, files, classes, columns.

What does not fit today is listed in too_large.txt with its present size. The list only shrinks: a
larger size is a violation, and so is a line of the list that is no longer needed or could be lower.
Functions and classes of C and C++ come from universal-ctags, those of Python from its own parser.
Standard library only.
"""

import ast
import json
import re
import subprocess
from collections import Counter
from pathlib import Path

FUNCTION_LINES_MAX = 45
FILE_LINES_MAX = 450
PUBLIC_FUNCTIONS_MAX = 20
COLUMNS_MAX = 100
LIST = "tests/layers/too_large.txt"
LIMITS = {
    "function": (FUNCTION_LINES_MAX, "lines"),
    "file": (FILE_LINES_MAX, "lines"),
    "class": (PUBLIC_FUNCTIONS_MAX, "public functions"),
    "columns": (0, f"lines over {COLUMNS_MAX} columns"),
}
TABLE = "table"  # instead of a size: one table with a row a key, as long as it needs to be

C_SUFFIXES = {".h", ".hpp", ".cc", ".cpp", ".c"}
CODE_SUFFIXES = C_SUFFIXES | {".py", ".f90", ".sh", ".cmake"}
CODE_ROOTS = ("src", "include", "python", "tests", "bench", "examples", "scripts", "cmake")
# ctags takes the macros of googletest for functions that all have one name.
GTEST = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?$")

Key = tuple[str, str]  # (kind of limit, path or path:name)


def code_files(root: Path, suffixes: set[str] = CODE_SUFFIXES):
    for top in CODE_ROOTS:
        for path in sorted((root / top).rglob("*")):
            if path.suffix in suffixes and path.is_file() and "__pycache__" not in path.parts:
                yield path


def is_script(path: Path) -> bool:
    return path.suffix == "" and path.is_file() and path.open("rb").read(2) == b"#!"


def narrow_files(root: Path):
    """Sources whose lines have at most 100 columns: C, C++, Python, CMake, scripts."""
    yield from code_files(root, C_SUFFIXES | {".py", ".sh", ".cmake"})
    yield from (path for path in [root / "CMakeLists.txt", root / "Makefile"] if path.is_file())
    for top in CODE_ROOTS:
        for path in sorted((root / top).rglob("*")):
            if path.name == "CMakeLists.txt" or is_script(path):
                yield path


def put(sizes: dict[Key, int], kind: str, name: str, size: int) -> None:
    if size > LIMITS[kind][0]:
        sizes[kind, name] = max(size, sizes.get((kind, name), 0))


def read_tags(root: Path, paths: list[Path]) -> list[dict]:
    if not paths:
        return []
    names = "".join(f"{path.relative_to(root)}\n" for path in paths)
    command = ["ctags", "-L", "-", "-f", "-", "--output-format=json", "--fields=+aeKnsS"]
    command += ["--kinds-C++=fp", "--kinds-C=fp", "--map-C=-.h", "--map-C++=+.h"]
    done = subprocess.run(
        command, input=names, cwd=root, text=True, stdout=subprocess.PIPE, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def measure_c(root: Path, sizes: dict[Key, int]) -> None:
    public: Counter[str] = Counter()
    for tag in read_tags(root, list(code_files(root, C_SUFFIXES))):
        path, name = tag["path"], tag["name"]
        if GTEST.match(name):
            name = re.sub(r"\W+", ".", tag.get("signature", "")).strip(".")
        if tag["kind"] == "function" and "end" in tag:
            put(sizes, "function", f"{path}:{name}", tag["end"] - tag["line"] + 1)
        if tag.get("access") == "public" and tag.get("scopeKind") in ("class", "struct"):
            public[f"{path}:{tag['scope'].split('::')[-1]}"] += 1
    for name, count in public.items():
        put(sizes, "class", name, count)


def measure_python(root: Path, sizes: dict[Key, int]) -> None:
    scripts = (path for path in narrow_files(root) if path.suffix in ("", ".py"))
    for path in scripts:
        text = path.read_text()
        if path.suffix == "" and "python" not in text.split("\n", 1)[0]:
            continue
        where = path.relative_to(root).as_posix()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                # Without the signature: that of a command is its table of options.
                size = node.end_lineno - node.body[0].lineno + 2
                put(sizes, "function", f"{where}:{node.name}", size)
            elif isinstance(node, ast.ClassDef):
                functions = (one for one in node.body if isinstance(one, ast.FunctionDef))
                shown = [one for one in functions if not one.name.startswith("_")]
                put(sizes, "class", f"{where}:{node.name}", len(shown))


def measure(root: Path) -> dict[Key, int]:
    """All that exceeds its limit, with its size."""
    sizes: dict[Key, int] = {}
    for path in code_files(root):
        where = path.relative_to(root).as_posix()
        put(sizes, "file", where, path.read_text(errors="replace").count("\n"))
    for path in narrow_files(root):
        lines = path.read_text(errors="replace").splitlines()
        long = sum(len(line) > COLUMNS_MAX for line in lines)
        put(sizes, "columns", path.relative_to(root).as_posix(), long)
    measure_c(root, sizes)
    measure_python(root, sizes)
    return sizes


def read_list(root: Path) -> dict[Key, str]:
    path = root / LIST
    lines = path.read_text().splitlines() if path.is_file() else []
    rows = (line.split() for line in lines if line and not line.startswith("#"))
    return {(kind, name): size for kind, name, size in rows}


def violations(root: Path):
    found, listed = measure(root), read_list(root)
    for (kind, name), size in sorted(found.items()):
        limit, unit = LIMITS[kind]
        allowed = listed.get((kind, name), str(limit))
        if allowed == TABLE:
            continue
        if size > int(allowed):
            yield f"{name}: {size} {unit}; at most {allowed}"
        elif size < int(allowed):
            yield f"{LIST}: {kind} {name} can be lowered to {size} (check_layers.py --lower)"
    for kind, name in sorted(listed.keys() - found.keys()):
        yield f"{LIST}: {kind} {name} fits now; remove the line (check_layers.py --lower)"


def lower(root: Path) -> None:
    """Lowers or removes lines of the list; never adds one and never raises a number."""
    found, path = measure(root), root / LIST
    kept = []
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            kind, name, size = line.split()
            if (kind, name) not in found:
                continue
            now = found[kind, name]
            line = f"{kind} {name} {size if size == TABLE else min(int(size), now)}"
        kept.append(line)
    path.write_text("\n".join(kept) + "\n")
