"""What the commands that make pictures and pages share."""

import contextlib
import logging
import pathlib

from ..plan import files
from .usage import CommandError


@contextlib.contextmanager
def needs(package: str, path: str):
    """Around an import: a missing `package` becomes a message that says how to install it. `path`:
    the command.
    """
    # Matplotlib would warn of a home that it cannot write; a folder of /tmp does.
    logging.getLogger(package).setLevel(logging.ERROR)
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != package:
            raise broken(package, path, error) from None
        install = f"{package} is missing; run `pip install {package}`, or `pip install 'backstay[pictures]'`"
        raise CommandError(path, install, exit_code=1, code="not_found") from None
    except ImportError as error:
        raise broken(package, path, error) from None


def broken(package: str, path: str, error: ImportError) -> CommandError:
    """The message where a package is there and cannot be imported."""
    reason = " ".join(str(error).split())
    return CommandError(path,
                        f"{package} cannot be imported: {reason}; run `pip install "
                        f"--force-reinstall {package}`", exit_code=1, code="unsupported")


def write_page(file: pathlib.Path, text: str) -> None:
    """Whole, or not at all: a page that is there can be opened. WriteError if it cannot be written.
    """
    with files.whole(file) as begun:
        begun.write_text(text, encoding="utf-8")
