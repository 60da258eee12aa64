"""The site builds without a warning; its links lead somewhere, and its search works offline."""

import html.parser
import pathlib
import re
import subprocess
import sys
import urllib.parse

import browser
import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> pathlib.Path:
    out = tmp_path_factory.mktemp("site") / "out"
    done = subprocess.run([sys.executable, ROOT / "scripts" / "site" / "build.py", "--out", out],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


class Page(html.parser.HTMLParser):
    """What a page links and loads, and the anchors that it has."""

    def __init__(self, file: pathlib.Path):
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.anchors.add(value)
            elif name in ("href", "src", "srcset") and value:
                self.links.append(value)


def dead(site: pathlib.Path) -> list[str]:
    pages = {file: Page(file) for file in site.rglob("*.html")}
    lost = []
    for file, page in pages.items():
        for link in page.links:
            target, _, anchor = urllib.parse.unquote(link.partition("?")[0]).partition("#")
            if re.match(r"(https?|data|mailto):", link):
                continue
            to = (file.parent / target).resolve() if target else file
            if not to.exists() or (anchor and to in pages and anchor not in pages[to].anchors
                                   and anchor != "__"):
                lost.append(f"{file.relative_to(site)}: {link}")
    return lost


def test_no_link_is_dead_and_nothing_is_fetched(site):
    assert dead(site) == []
    for file in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|link rel=\"stylesheet\")[^>]*(?:src|href)=\"(http[^\"]*)",
                            file.read_text(encoding="utf-8"))
        assert loaded == [], file


def test_a_dead_link_is_found(tmp_path):
    (tmp_path / "a.html").write_text('<p id="x"><a href="b.html"></a><a href="#y"></a>'
                                     '<a href="a.html#x"></a>')
    assert dead(tmp_path) == ["a.html: b.html", "a.html: #y"]


def test_every_function_of_the_interfaces_has_its_place(site):
    for header, page in (("backstay.h", "c.html"), ("backstay_streams.h", "streams.html")):
        anchors = Page(site / "docs" / "reference" / page).anchors
        text = (ROOT / "include" / "backstay" / header).read_text()
        for name in re.findall(r"^BACKSTAY_API .*?(backstay_\w+)\(", text, re.M):
            assert f"c.{name}" in anchors, name
    python = Page(site / "docs" / "reference" / "python.html").anchors
    homes = (ROOT / "python" / "backstay" / "__init__.py").read_text().split("_HOMES = {")[1]
    for names in re.findall(r'"\w+": \((.*?)\)', homes.split('"format"')[0], re.S):
        for name in re.findall(r'"([a-z_]+)"', names):
            assert f"backstay.{name}" in python, name


@browser.needed
def test_the_search_works_without_a_network(site, tmp_path):
    page = site / "search.html"
    found = browser.elements(page, tmp_path, "?q=BACKSTAY_ELOST")
    assert re.search(r"<li[^>]*><a href=\"[^\"]*docs/guide/when-something-goes-wrong.html", found)
    assert "did not match any documents" in browser.elements(page, tmp_path, "?q=qqxxqq")
