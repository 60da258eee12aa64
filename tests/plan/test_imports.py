"""The models need numpy and the standard library only, so that they can be used where nothing else
is installed.
"""

import ast
import pathlib
import sys

import backstay.plan

# Folders of the planner that may need more: none of them is imported by the models.
OTHERS = {"simulate", "traces", "figures", "explore"}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0] if node.level == 0 else "." * node.level + (node.module
                or "")


def test_models_import_numpy_alone():
    folder = pathlib.Path(backstay.plan.__file__).parent
    for path in folder.glob("*.py"):
        for name in imports(path):
            known = name in sys.stdlib_module_names or name == "numpy" or name.startswith(".")
            assert known and not name.startswith("..") and name.strip(".") not in OTHERS, f"{path.name} imports {name}"


def test_simulation_and_logs_need_numpy_alone():
    folder = pathlib.Path(backstay.plan.__file__).parent
    for path in (one for name in ("simulate", "traces") for one in (folder / name).glob("*.py")):
        for name in imports(path):
            assert name in sys.stdlib_module_names or name == "numpy" or name.startswith("."), f"{path.name} imports {name}"
