"""Every error code of backstay.h and every exit code has its place in the guide, and no other."""

import pathlib
import re

from backstay import errors

ROOT = pathlib.Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide"
PAGE = GUIDE / "when-something-goes-wrong.md"


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def codes_of_the_header() -> dict[str, int]:
    listed = read("include/backstay/backstay.h").split("typedef enum backstay_error")[1]
    return {name: int(number) for name, number in
            re.findall(r"(BACKSTAY_\w+) = (\d+)", listed.split("} backstay_error")[0])}


def numbers_of_the_code() -> dict[str, int]:
    listed = read("src/base/result.h").split("enum class Code")[1].split("};")[0]
    return {name: int(number) for name, number in re.findall(r"(\w+) = (\d+),", listed)}


def exit_codes() -> dict[str, int]:
    return {name: int(number) for name, number in
            re.findall(r"constexpr int (exit_\w+) = (\d+);", read("src/bin/parts/exit_code.h"))}


def exit_of(short: str) -> int:
    """exit_code_of() of exit_code.cc."""
    cases: list[str] = []
    for line in read("src/bin/parts/exit_code.cc").splitlines():
        cases += re.findall(r"case Code::(\w+):", line)
        if returned := re.search(r"return (exit_\w+);", line):
            if short in cases or "default:" in line:
                return exit_codes()[returned[1]]
            cases = []
    raise AssertionError(short)


def rows() -> list[tuple[str, ...]]:
    """(C name, number, Python's name, short name, exit code) of each row of the page."""
    return re.findall(r"^\| `(BACKSTAY_\w+)` \((\d+)\) \| (?:`(\w+)`)? *\| `(\w+)` \|.*"
                      r"\| (\d+) \|$", PAGE.read_text(encoding="utf-8"), re.M)


def test_each_code_of_the_header_has_its_row():
    assert {name: int(number) for name, number, *_ in rows()} == codes_of_the_header()
    assert len(rows()) == len(codes_of_the_header())


def test_the_names_of_python_and_of_json_are_right():
    for _, number, python, short, _ in rows():
        assert numbers_of_the_code()[short] == int(number)
        if int(number):
            assert errors.BY_CODE[int(number)].__name__ == python


def test_each_code_ends_a_command_with_the_exit_code_of_its_row():
    for name, _, _, short, code in rows():
        assert exit_of(short) == int(code), name


def table(text: str) -> list[str]:
    section = text.split("## Exit codes\n")[1].split("\n## ")[0]
    return re.findall(r"^\| (\d+(?: \+ n)?) \|", section, re.M)


def test_each_exit_code_has_its_rows():
    known = {str(code) for code in exit_codes().values()}
    assert set(table(read("docs/guide/cli.md"))) == known | {"128 + n"}
    what_to_do = table(PAGE.read_text(encoding="utf-8"))
    assert set(what_to_do) == known and len(what_to_do) == len(known)
