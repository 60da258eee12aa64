"""The reference of the Python package out of its docstrings; nothing is imported."""

import ast
import pathlib


def _signature(node: ast.FunctionDef) -> str:
    arguments = ast.unparse(node.args)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({arguments}){returns}"


def _function(node: ast.FunctionDef, kind: str, before: str = "") -> list[str]:
    words = ast.get_docstring(node) or ""
    return [f"```{{{kind}}} {before}{_signature(node)}", "```", "", words, ""]


def _class(node: ast.ClassDef) -> list[str]:
    out = [f"### {node.name}", "", f"```{{py:class}} {node.name}", "```", "",
           ast.get_docstring(node) or "", ""]
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and not one.name.startswith("_") and ast.get_docstring(
                one):
            kind = "py:property" if any(ast.unparse(mark) == "property" for mark
                                        in one.decorator_list) else "py:method"
            if kind == "py:property":
                out += [f"```{{py:property}} {node.name}.{one.name}", "```", "",
                        ast.get_docstring(one), ""]
            else:
                out += _function(one, kind, f"{node.name}.")
    return out


def module(path: pathlib.Path) -> tuple[str, list[str]]:
    """The module's docstring, and a section for each public name that has one."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    out: list[str] = []
    for node in tree.body:
        if getattr(node, "name", "_").startswith("_") or not ast.get_docstring(node):
            continue
        if isinstance(node, ast.FunctionDef):
            out += [f"### {node.name}", "", *_function(node, "py:function", "backstay.")]
        elif isinstance(node, ast.ClassDef):
            out += _class(node)
    return ast.get_docstring(tree) or "", out


def errors_table(path: pathlib.Path) -> list[str]:
    """The exceptions of errors.py: its one dictionary literal."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_NAMES":
            return ["| exception | code | |", "|---|---|---|",
                    *(f"| `backstay.{name}` | {code} | {text} |"
                      for code, (name, text) in ast.literal_eval(node.value).items())]
    raise ValueError(f"{path}: no _NAMES")


def page(package: pathlib.Path) -> str:
    out = ["# Python", ""]
    for title, name in (("Sessions", "session.py"), ("Streams", "stream.py"),
                        ("Reading versions", "format/version.py")):
        words, sections = module(package / name)
        out += [f"## {title}", "", words, "", *sections]
        if name.startswith("format"):
            words, sections = module(package / "format" / "__init__.py")
            out += [words, "", *sections]
    out += ["## Exceptions", "", "All are classes under `backstay.Error`. What to do about each: "
            "[When something goes wrong](../guide/when-something-goes-wrong.md#error-codes).", "",
            *errors_table(package / "errors.py")]
    return "\n".join(out) + "\n"
