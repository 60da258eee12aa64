"""What docs/plan shows is what the commands print."""

import re

import measured
import pages
import pytest
from backstay.cli.plan import COMMANDS
from runner import run

MAKE_FILES = {"explore", "figures"}  # their pages show no output; test_NAME.py tries them


@pytest.mark.parametrize("page", pages.examples(), ids=lambda page: page.name)
def test_examples_are_real(page, monkeypatch):
    monkeypatch.chdir(pages.PAGES.parents[1])
    text = page.read_text(encoding="utf-8")
    assert pages.renewed(text,
                         run) == text, "run: PYTHONPATH=python python tests/plan/pages.py --write"


def test_the_table_of_aggregation_is_the_models_beside_the_run():
    text = measured.PAGE.read_text(encoding="utf-8")
    assert measured.page_with(text) == text, "run: PYTHONPATH=python python tests/plan/measured.py --write"
    run = measured.found()["write_pattern"]
    for way, (requests, waits, on_disk) in measured.predicted(measured.found()).items():
        real = run["ways"][way]
        assert real["blocked_s"] > waits and (way == "direct") == (real["blocked_s"] > 1.5
            * waits), "the page says what the model leaves out"
        assert way == "direct" or (0.8 < real["on_disk_s"] / on_disk < 1.2
                                   and requests < real["write_requests"] < 1.2 * requests)


def test_every_command_has_an_example_and_a_page():
    text = (pages.PAGES / "README.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        page = re.search(rf"\| `{name}` \| \[([a-z-]+\.md)\]", text)
        assert page
        if name not in MAKE_FILES:
            assert re.search(rf"^{re.escape(pages.PROMPT)}{name}\b",
                             text + (pages.PAGES / page[1]).read_text("utf-8"), re.M)


def test_links_lead_somewhere():
    for page in pages.PAGES.glob("*.md"):
        for target in re.findall(r"\]\(([a-z./-]+\.md)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).is_file(), f"{page.name}: {target}"


def test_the_python_example_runs():
    text = (pages.PAGES
            / "README.md").read_text(encoding="utf-8").split("## From Python\n\n")[1].split("\n\n")[
                0]
    lines = [line.strip() for line in text.splitlines()]
    assert len(lines) == 3
    exec("\n".join(lines), {})
