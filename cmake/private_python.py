"""python private_python.py PREFIX PYPROJECT: a small virtual environment below PREFIX for the
commands in Python.

Run by .venv's interpreter. Copies the packages that PYPROJECT names as dependencies or for
pictures, and theirs, out of .venv, so an installation needs neither a network nor the source tree.
It sees nothing of the system's packages. The environment finds itself by its own place: the prefix
may be moved afterwards. Prints every file that it makes, one a line.
"""

import importlib.metadata
import os
import pathlib
import re
import shutil
import sys
import tomllib

CONFIGURATION = """home = {home}
include-system-site-packages = false
version = {version}
"""


def dependencies(names):
    """The distributions of `names` and of all that they need, those that lie in .venv. No extras.
    """
    found, wanted = {}, list(names)
    while wanted:
        text = wanted.pop()
        name = re.match(r"[A-Za-z0-9._-]+", text)[0]
        if name in found or "extra ==" in text:
            continue
        try:
            found[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # behind a marker for another system
        wanted.extend(found[name].requires or ())
    return [one for one in found.values()
            if pathlib.Path(one.locate_file("")).is_relative_to(sys.prefix)]


def is_used(path: pathlib.PurePath) -> bool:
    return not {"..", "__pycache__", "tests"} & set(path.parts)


def copy(distribution, folder: pathlib.Path):
    for file in filter(is_used, distribution.files or ()):
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(distribution.locate_file(file), target)
        yield target


def link_interpreter(prefix: pathlib.Path):
    """Under the name that has the version: after an upgrade of the system it is missing, not wrong.
    """
    target = prefix / "bin" / "python"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    target.symlink_to(os.path.realpath(sys.executable))
    return target


def main() -> None:
    prefix = pathlib.Path(sys.argv[1])
    with open(sys.argv[2], "rb") as file:
        project = tomllib.load(file)["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["pictures"]
    made = [link_interpreter(prefix), prefix / "pyvenv.cfg"]
    made[1].write_text(CONFIGURATION.format(
        home=pathlib.Path(os.path.realpath(sys.executable)).parent,
                                            version=sys.version.split()[0]))
    packages = prefix / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    for distribution in dependencies(wanted):
        made.extend(copy(distribution, packages))
    print("\n".join(map(str, made)))


if __name__ == "__main__":
    main()
