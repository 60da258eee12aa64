"""Pages of the reference out of the public headers: their comments are the text.

A comment stands before what it describes, an enumerator's behind it or on the lines above a group.
"""

import pathlib
import re


NAMES = re.compile(r"\b(BACKSTAY_\w+|backstay_\w+\(\)|(?:checkpoint|agent|durable|storage)\.\w+)")


def _prose(text: str) -> str:
    """`*word*` stays emphasis; other stars and signs are the reader's; names become code."""
    text = re.sub(r"(?<![\w*])\*([\w][\w -]*?)\*(?![\w*])", "\0\\1\0", text)
    text = text.replace("*", r"\*").replace("<", r"\<").replace("\0", "*")
    return NAMES.sub(r"`\1`", text)


def markdown(comment: str) -> str:
    """The text of a comment; what it has in backticks stays as it is."""
    text = re.sub(r"^[ \t]*(?:/\*+|\*/|\*|//|!)? ?", "", comment.replace("*/", ""), flags=re.M)
    parts = re.split(r"(`[^`]*`)", text)
    text = "".join(part if part.startswith("`") else _prose(part) for part in parts)
    return re.sub(r"^Errors:", "\n**Errors:**", text.strip(), flags=re.M)


def opening(text: str, mark: str) -> tuple[str, str]:
    """The header's first comment: its prose, and the example in it."""
    if mark == "/*":
        comment = re.search(r"/\*(.*?)\*/", text, re.S)[1]
        lines = [re.sub(r"^ \* ?", "", line) for line in comment.splitlines()]
    else:
        lines = []
        for line in text.splitlines():
            if not line.startswith(mark):
                break
            lines.append(line[len(mark):].removeprefix(" "))
    prose, example = [], []
    for line in lines:
        (example if line.startswith("  ") else prose).append(line)
    return markdown("\n".join(line.strip() for line in prose)), "\n".join(
        line[2:] for line in example)


def _enum(body: str, name: str) -> list[str]:
    out = ["", f"```{{c:enum}} {name}", "```", "", "| | |", "|---|---|"]
    for group, value, number, comment in re.findall(
            r"^  (?:/\* (.*?) \*/\n  )?(BACKSTAY_\w+) = (\d+),?(?: *(/\*.*?\*/))?", body,
            re.M | re.S):
        if group:
            out.append(f"| **{markdown(group)}** | |")
        out.append(f"| `{value}` = {number} | {markdown(comment)} |".replace("\n", " "))
    return out


DECLARED = re.compile(
    r"(?P<comment>/\*(?:(?!\*/).)*\*/\n)"
    r"(?P<code>BACKSTAY_API .*?;|typedef (?:enum|struct) .*?\} \w+;)", re.S)


def c_page(title: str, path: pathlib.Path) -> str:
    text = path.read_text(encoding="utf-8")
    prose, example = opening(text, "/*")
    out = [f"# {title}", "", prose, ""]
    if example.strip():
        out += ["```c", example, "```", ""]
    for found in DECLARED.finditer(text):
        comment, code = markdown(found["comment"]), found["code"]
        if name := re.match(r"typedef enum (\w+)", code):
            out += ["", f"## {name[1]}", "", comment, *_enum(code, name[1])]
        elif name := re.match(r"typedef struct (\w+)", code):
            out += ["", f"## {name[1]}", "", comment, "", "```c", code, "```"]
        else:
            declaration = re.sub(r"\s+", " ", code.removeprefix("BACKSTAY_API ").rstrip(";"))
            name = re.search(r"(\w+)\(", declaration)[1]
            out += ["", f"## {name}", "", f"```{{c:function}} {declaration}", "```", "", comment]
    return "\n".join(out) + "\n"


def listing_page(title: str, path: pathlib.Path, mark: str, language: str) -> str:
    """The prose of the header's first comment, and its declarations as they stand."""
    text = path.read_text(encoding="utf-8")
    prose, example = opening(text, mark)
    rest = text.splitlines()
    while rest and rest[0].startswith(mark):
        rest.pop(0)
    return "\n".join([f"# {title}", "", prose, "", f"```{language}", example, "```", "",
                      "## The interface", "", f"```{language}", *rest, "```", ""])
