"""build.py [--out DIR]: the pages of docs/ as a site that opens without a network.

The pages are copied in the folders that they have, so that their links stay what they are. What a
page links outside of them (a header, a folder of examples) becomes a page that shows it. Reference
pages are made from the public headers and the docstrings (headers.py, python_pages.py). Any warning
of Sphinx, a dead link among them, ends the build.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import headers
import python_pages

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
LANGUAGES = {".h": "c", ".c": "c", ".cc": "cpp", ".hpp": "cpp", ".py": "python", ".f90": "fortran",
             ".txt": "text", ".json": "json"}
MENU = [
    ("Begin", ["docs/guide/getting-started", "docs/guide/choosing",
               "docs/guide/when-something-goes-wrong", "docs/known-issues"]),
    ("Run", ["docs/guide/several-nodes", "docs/guide/slurm", "docs/guide/strategies",
             "docs/guide/streams", "docs/guide/files", "docs/guide/transparent", "docs/guide/cli",
             "docs/guide/configuration", "docs/guide/metrics"]),
    ("Look", ["docs/guide/report", "docs/guide/reading-versions", "docs/benchmarks"]),
    ("Plan", ["docs/plan/README", "docs/plan/*"]),
    ("Reference", ["docs/reference/c", "docs/reference/streams", "docs/reference/mpi",
                   "docs/reference/cpp", "docs/reference/fortran", "docs/reference/python",
                   "docs/reference/man"]),
    ("Understand", ["docs/architecture", "docs/fault-model", "docs/glossary", "docs/protocol/*",
                    "docs/format/README", "docs/format/*", "docs/decisions/README",
                    "docs/decisions/*"]),
    ("Take part", ["CONTRIBUTING", "CHANGELOG", "docs/roadmap", "docs/debts", "*"]),
]


def shown(path: pathlib.Path) -> str:
    """A page that shows a file, or the files of a folder."""
    name = path.relative_to(ROOT).as_posix()
    files = sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
    out = [f"# {name}", ""]
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        title = [f"## {file.name}", ""] if path.is_dir() else []
        out += [*title, f"`````{{code-block}} {LANGUAGES.get(file.suffix, 'text')}", text.rstrip(),
                "`````", ""]
    return "\n".join(out)


class Pages:
    """Copies pages, and what they link, until nothing is missing."""

    def __init__(self, to: pathlib.Path):
        self.to = to
        self.done: set[pathlib.Path] = set()

    def put(self, name: str, text: str) -> None:
        file = self.to / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def add(self, path: pathlib.Path) -> None:
        if path in self.done:
            return
        self.done.add(path)
        name = path.relative_to(ROOT).as_posix()
        if path.suffix == ".md":
            self.put("index.md" if name == "README.md" else name, self.linked(path))
        else:
            self.put(f"{name}.md", shown(path))

    def linked(self, page: pathlib.Path) -> str:
        """The page with links that lead to pages of the site; code stays as it is."""
        parts = re.split(r"(^```.*?^```$|`[^`\n]+`)", page.read_text(encoding="utf-8"),
                         flags=re.M | re.S)
        return "".join(part if part.startswith("`") else
                       LINK.sub(lambda link: self.link(page, link), part) for part in parts)

    def link(self, page: pathlib.Path, link: re.Match) -> str:
        target, hash_, anchor = link[2].partition("#")
        path = (page.parent / target).resolve()
        if re.match(r"[a-z]+:", target) or not target or not path.exists():
            return link[0]
        if path.suffix in (".svg", ".png"):
            return link[0]
        self.add(path)
        if path == ROOT / "README.md":
            target = target.replace("README.md", "index.md")
        elif path.suffix != ".md":
            target = target.rstrip("/") + ".md"
        return f"{link[1]}{target}{hash_}{anchor}{link[3]}"


def references(pages: Pages) -> None:
    include, man = ROOT / "include" / "backstay", ROOT / "docs" / "man"
    pages.put("docs/reference/c.md", headers.c_page("C: backstay.h", include / "backstay.h"))
    pages.put("docs/reference/streams.md",
              headers.c_page("Streams: backstay_streams.h", include / "backstay_streams.h"))
    pages.put("docs/reference/mpi.md",
              headers.c_page("MPI: backstay_mpi.h", include / "backstay_mpi.h"))
    pages.put("docs/reference/cpp.md",
              headers.listing_page("C++: backstay.hpp", include / "backstay.hpp", "//", "cpp"))
    pages.put("docs/reference/fortran.md",
              headers.listing_page("Fortran: backstay.f90", include / "backstay.f90", "!",
                                   "fortran"))
    pages.put("docs/reference/python.md", python_pages.page(ROOT / "python" / "backstay"))
    text = ["# Man pages", ""]
    for page in sorted(man.glob("*.md")):
        name, section = page.name.split(".md")[0].rsplit(".", 1)
        text += [f"## {name}({section})", "",
                 re.sub(r"^# ", "### ", page.read_text(encoding="utf-8"), flags=re.M)]
    text += ["backstay(1) goes on with [the command line](../guide/cli.md), backstay.toml(5) with "
             "[configuration](../guide/configuration.md).", ""]
    pages.put("docs/reference/man.md", "\n".join(text))


def menu(to: pathlib.Path) -> str:
    """The tables of contents of the first page: every page once."""
    left = sorted(page.relative_to(to).with_suffix("").as_posix() for page in to.rglob("*.md"))
    left.remove("index")
    files = [page for page in left if (ROOT / page).exists()]  # what pages link outside of them
    left = [page for page in left if page not in files]
    out = []
    for caption, names in MENU:
        chosen = []
        for name in names:
            folder = name.removesuffix("*")
            chosen += [page for page in left if page not in chosen
                       and (page.startswith(folder) if name.endswith("*") else page == name)]
        left = [page for page in left if page not in chosen]
        out += ["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *chosen, "```"]
    out += ["", "```{toctree}", ":hidden:", ":caption: Files", "", *files, "```"]
    return "\n".join(out) + "\n"


def make_pages(to: pathlib.Path) -> None:
    pages = Pages(to)
    for page in [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md",
                 *sorted((ROOT / "docs").rglob("*.md"))]:
        if "man" not in page.parts:
            pages.add(page)
    references(pages)
    for folder in ("docs/img", "docs/plan/img"):
        shutil.copytree(ROOT / folder, to / folder)
    with (to / "index.md").open("a", encoding="utf-8") as first:
        first.write(menu(to))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "site")
    out = parser.parse_args().out.resolve()
    with tempfile.TemporaryDirectory(prefix="backstay-site-") as scratch:
        source = pathlib.Path(scratch) / "pages"
        source.mkdir()
        make_pages(source)
        shutil.rmtree(out, ignore_errors=True)
        code = subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b",
                               "html", "-c", HERE, "-d", f"{scratch}/trees", source, out],
                              check=False).returncode
    if code == 0:
        shutil.copytree(ROOT / "docs" / "img", out / "docs" / "img")  # <picture> names them
        print(f"site: open {out / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
