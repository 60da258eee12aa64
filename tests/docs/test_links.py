"""Each link of each page leads to a file that is there, and its anchor to a heading."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?\s*\)")
BUILT = {".git", ".venv", "bin", "build", "site", "venv", "__pycache__"}
HTML = re.compile(r"(?:src|srcset|href)=\"([^\"]+)\"")


def files(*endings: str) -> list[pathlib.Path]:
    """Of the sources, without what was built."""
    return [path for path in ROOT.rglob("*") if path.name.endswith(endings) and path.is_file()
            and not BUILT & set(path.relative_to(ROOT).parts)]


def without_code(text: str) -> str:
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    text = re.sub(r"(?:\A|\n\n)(?:    .*\n|\n)+", "\n\n", text)
    return re.sub(r"`[^`\n]*`", "`", text)


def anchors(text: str) -> set[str]:
    """As GitHub and the site make them: lower case, words joined by dashes."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S),
                              re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number, name = 0, slug
        while name in found:
            number += 1
            name = f"{slug}-{number}"
        found.add(name)
    return found


def dead(page: pathlib.Path, text: str) -> list[str]:
    lost = []
    for target in LINK.findall(without_code(text)) + HTML.findall(without_code(text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            lost.append(target)
        elif anchor and file.suffix == ".md" and anchor not in anchors(
                text if file == page else file.read_text(encoding="utf-8")):
            lost.append(target)
    return lost


def test_no_link_is_dead():
    lost = {page.relative_to(ROOT).as_posix(): dead(page, page.read_text(encoding="utf-8"))
            for page in files(".md")}
    assert {page: links for page, links in lost.items() if links} == {}


def test_a_dead_link_is_found():
    page = ROOT / "docs" / "roadmap.md"
    text = ("# A `b`: c\n\n[x](nowhere.md) [y](#a-b-c) [z](#not-there) "
            "[w](glossary.md#no-such-heading)\n\n    [code](nothing)\n")
    assert dead(page, text) == ["nowhere.md", "#not-there", "glossary.md#no-such-heading"]


def test_no_file_names_a_place_that_cannot_be():
    nowhere = "example" + ".invalid"
    assert [path for path in files(".md", ".txt", ".cmake", ".toml", ".in")
            if nowhere in path.read_text(encoding="utf-8", errors="replace")] == []
