"""Opens pages in chromium, without a network: what it says, the page's elements afterwards,
pictures.
"""

import pathlib
import re
import shutil
import subprocess

import pytest

PROGRAM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
needed = pytest.mark.skipif(PROGRAM is None,
                            reason="no chromium; scripts/setup test installs "
                                   "chromium-headless-shell")


def _opened(page: pathlib.Path, profile: pathlib.Path, *words: str, fragment: str = "") -> str:
    done = subprocess.run(
        [PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
         "--enable-logging=stderr",
         "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=20000", *words,
         page.as_uri() + fragment],
        capture_output=True, text=True, timeout=200)  # fmt: skip
    assert not re.findall(r".*CONSOLE.*", done.stderr), done.stderr
    return done.stdout


def elements(page: pathlib.Path, profile: pathlib.Path, fragment: str = "") -> str:
    """The page's HTML once its scripts have run. Asserts that the console stayed empty."""
    return _opened(page, profile, "--dump-dom", fragment=fragment)


def picture(page: pathlib.Path, profile: pathlib.Path, size=(1280, 800),
            fragment: str = "") -> bytes:
    """A PNG of the window. Asserts that the console stayed empty."""
    file = page.with_suffix(".png")
    _opened(page, profile, f"--screenshot={file}", "--window-size={},{}".format(*size),
            fragment=fragment)
    return file.read_bytes()
