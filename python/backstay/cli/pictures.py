"""What the commands that make pictures and pages share."""

import contextlib
import errno
import os
import pathlib

from .usage import CommandError


@contextlib.contextmanager
def needs(package: str, path: str):
    """Around an import: a missing `package` becomes a message that says how to install it. `path`: the command."""
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
    return CommandError(path, f"{package} cannot be imported: {reason}; run `pip install --force-reinstall {package}`", exit_code=1, code="unsupported")


def made_folder(folder: pathlib.Path) -> None:
    """Makes the folder. OSError names what stands in its way."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, "is not a folder", str(folder)) from None


def check_file(file: pathlib.Path) -> None:
    """OSError if `file` cannot be a file that is written: it is a folder, or its folder is not there."""
    if file.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder; a file is needed", str(file))
    if not file.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(file.parent))


def write_page(file: pathlib.Path, text: str) -> None:
    """Under another name until it is whole: a page that is there can be opened. OSError if it cannot be written."""
    check_file(file)
    if file.exists() and not file.is_file():  # a device or a pipe is written to, not replaced by a file
        file.write_text(text, encoding="utf-8")
        return
    file = file.resolve()  # of a link, what it stands for
    temporary = file.with_name(file.name + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, file)
