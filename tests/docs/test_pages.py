"""Pages that stay short, and tables that show as tables."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
# Who needs more room moves what users do not meet to debts.md.
WORDS_MAX = {"docs/known-issues.md": 1500, "docs/roadmap.md": 900, "README.md": 1500}


def broken_tables(text: str) -> list[str]:
    """The first line of each block of rows that has no head, or a row with other columns."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    found = []
    for block in re.findall(r"(?:^\|.*\n?)+", text, re.M):
        lines = block.splitlines()
        columns = [len(re.findall(r"(?<!\\)\|", line)) for line in lines]
        if len(lines) < 2 or not re.fullmatch(r"[|: -]+", lines[1]):
            found.append(lines[0])
        else:
            found += [line for line, one in zip(lines, columns, strict=True) if one != columns[0]]
    return found


def test_pages_that_are_read_at_one_sitting_stay_short():
    words = {page: len((ROOT / page).read_text(encoding="utf-8").split()) for page in WORDS_MAX}
    assert {page: count for page, count in words.items() if count > WORDS_MAX[page]} == {}


def test_each_table_has_its_head_and_each_row_its_columns():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    broken = {page.relative_to(ROOT).as_posix(): broken_tables(page.read_text(encoding="utf-8"))
              for page in pages}
    assert {page: rows for page, rows in broken.items() if rows} == {}


def test_each_page_of_a_protocol_opens_with_its_picture():
    first = {page.name: page.read_text(encoding="utf-8").splitlines()[:12]
             for page in (ROOT / "docs" / "protocol").glob("*.md")}
    assert [name for name, lines in sorted(first.items())
            if not any(line.startswith("    ") for line in lines)] == []


def test_a_broken_table_is_found():
    head = "| a | b |\n|---|---|\n"
    assert broken_tables(head + "| c | d \\| e |\n") == []
    assert broken_tables(head + "| `f|g` | h |\n") == ["| `f|g` | h |"]
    assert broken_tables(head + "| c |\n") == ["| c |"]
    assert broken_tables(head + "\n| c | d |\n") == ["| c | d |"]
