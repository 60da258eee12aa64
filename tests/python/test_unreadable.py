"""Anything may be in the place of a version's file: `backstay.open` of the job takes the next older
good version with a warning, or says which one that is; only exceptions of backstay.format leave it;
no memory is taken for what a length says.
"""

import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import warnings

import backstay
import pytest
from backstay import format as fmt

xxhash = pytest.importorskip("xxhash")

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "v2" / "golden"
OLDER, NEWEST = 12, 13
FILES = ["commit.local", "node-0000000.manifest", "node-0000000.segment"]
TIB = 1 << 40


def patch(path, changes, seals):
    """Overwrites numbers, makes the checksums good again, and returns the last one."""
    data = bytearray(path.read_bytes())
    for at, value in changes:
        struct.pack_into("<Q", data, at, value)
    for at in seals:
        at = at if at >= 0 else len(data) + at
        struct.pack_into("<Q", data, at, xxhash.xxh3_64_intdigest(bytes(data[:at])))
    path.write_bytes(data)
    return struct.unpack_from("<Q", data, at)[0]


@pytest.fixture
def job():
    """Two good versions, in a folder that other users may enter: each pytest that starts closes the
    folder of all its kind to them."""
    with tempfile.TemporaryDirectory(prefix="backstay-unreadable-") as folder:
        pathlib.Path(folder).chmod(0o755)
        yield two_versions(pathlib.Path(folder))


def two_versions(folder):
    job = pathlib.Path(shutil.copytree(GOLDEN, folder / "golden"))
    newest = pathlib.Path(shutil.copytree(job / f"v{OLDER:016d}", job / f"v{NEWEST:016d}"))
    patch(newest / "node-0000000.segment", [(16, NEWEST)], [152])
    digest = patch(newest / "node-0000000.manifest", [(16, NEWEST)], [184, -8])
    patch(newest / "commit.local", [(16, NEWEST), (48, digest)], [504])
    return job


@pytest.fixture
def newest(job):
    return job / f"v{NEWEST:016d}"


def a_socket(path):
    where = os.getcwd()
    os.chdir(path.parent)  # its whole name may be too long
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.chdir(where)


def a_folder_with_content(path):
    path.mkdir()
    (path / "file").write_bytes(b"x")


def extended(path, to=TIB):
    os.truncate(path, to)


IN_PLACE = {
    "socket": a_socket,
    "pipe": os.mkfifo,
    "folder": a_folder_with_content,
    "loop": lambda path: path.symlink_to(path.name),
    "link to nothing": lambda path: path.symlink_to("nowhere"),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "link to a folder": lambda path: path.symlink_to("/"),
    "below a file": lambda path: path.symlink_to("../../golden/v0000000000000012/commit.local/x"),
    "empty": lambda path: path.write_bytes(b""),
    "zeros of 1 TiB": lambda path: (path.touch(), extended(path)),
}


def test_both_are_good(job):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert backstay.open(job).number == NEWEST
        assert backstay.open(job, verify=True).number == NEWEST
        assert backstay.open(job / f"v{OLDER:016d}", verify=True).number == OLDER


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("put", IN_PLACE.values(), ids=IN_PLACE)
def test_in_place_of_a_file_of_the_newest(job, newest, name, put):
    (newest / name).unlink()
    put(newest / name)
    with pytest.warns(UserWarning, match=f"skipped: .*{newest}"):
        version = backstay.open(job)
    assert version.number == OLDER and version.verify() > 0
    with pytest.raises(fmt.FormatError, match=str(newest)):
        backstay.open(newest, verify=True)


@pytest.mark.parametrize("name", FILES[:2])
def test_a_record_that_was_extended(job, newest, name):
    extended(newest / name)
    with pytest.warns(UserWarning, match="skipped"):
        assert backstay.open(job).number == OLDER


@pytest.mark.parametrize("name", FILES)
def test_another_format_number(job, newest, name):
    """A file of a newer release, or a flipped bit."""
    data = bytearray((newest / name).read_bytes())
    data[8] ^= 0x40
    (newest / name).write_bytes(data)
    with pytest.warns(UserWarning, match="skipped: .*format"):
        assert backstay.open(job).number == OLDER
    shutil.rmtree(job / f"v{OLDER:016d}")
    with pytest.warns(UserWarning), pytest.raises(fmt.UnsupportedError):
        backstay.open(job)


def test_a_path_of_bytes(job):
    assert backstay.open(os.fsencode(job)).number == NEWEST


def test_a_mark_that_was_extended(newest):
    (newest / "damaged").touch()
    extended(newest / "damaged")
    with pytest.raises(fmt.DamagedError, match="marked as damaged"):
        backstay.open(newest)


def damage_first_chunk(version):
    at = int(backstay.open(version)._nodes[0].manifest.chunks[0]["segment_offset"])
    with open(version / "node-0000000.segment", "r+b") as segment:
        segment.seek(at)
        byte = segment.read(1)
        segment.seek(at)
        segment.write(bytes([byte[0] ^ 1]))


def test_a_damaged_chunk_is_found_before_or_names_the_older_one(job, newest):
    damage_first_chunk(newest)
    version = backstay.open(job)
    assert version.number == NEWEST
    with pytest.raises(fmt.DamagedError, match=f"older version is .*v{OLDER:016d}.*verify=True"):
        version.verify()
    with pytest.warns(UserWarning, match="skipped.*checksum"):
        assert backstay.open(job, verify=True).number == OLDER
    with pytest.raises(fmt.DamagedError, match="checksum"):
        backstay.open(newest, verify=True)


def test_none_is_good(job, newest):
    for version in (newest, job / f"v{OLDER:016d}"):
        damage_first_chunk(version)
    with pytest.warns(UserWarning, match="skipped"), pytest.raises(fmt.NotFoundError,
        match="no complete version"):
        backstay.open(job, verify=True)


def test_a_version_that_goes_while_it_is_read(job, newest):
    version = backstay.open(job)
    shutil.rmtree(newest)
    with pytest.raises(fmt.NotFoundError, match="removed while it was read"):
        version.verify()
    with pytest.raises(fmt.NotFoundError):
        fmt.version_folders(job / "nowhere")
    with pytest.raises(fmt.UncommittedError):
        fmt.Version(newest)


# In a process of its own: as a user who may not read everything, and with little memory.
READER = """
import os, resource, sys, warnings
warnings.simplefilter("ignore")
import numpy, xxhash
import backstay
from backstay import format as fmt
os.chdir("/")
if sys.argv[2] == "nobody": os.setresuid(65534, 65534, 65534)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20),) * 2)
try:
    print(backstay.open(sys.argv[1], verify=True).number)
except fmt.FormatError as error:
    print(type(error).__name__, error)
"""


def read_as(who, path):
    done = subprocess.run([sys.executable, "-c", READER, path, who], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", FILES)
def test_little_memory_and_a_file_of_a_tebibyte(job, newest, name):
    extended(newest / name)
    # A segment may be longer than what counts of it: the rest is room for the next version.
    assert read_as("me", job) == str(NEWEST if name.endswith("segment") else OLDER)


def is_closed():
    """To another user: the checkout, or the modules that the reader needs."""
    places = [pathlib.Path(__file__), pathlib.Path(sys.prefix), pathlib.Path(sys.base_prefix)]
    return any(not folder.stat().st_mode & 1 for one in places for folder in one.parents)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
@pytest.mark.skipif(is_closed(), reason="another user may not enter the checkout or its modules")
@pytest.mark.parametrize("name", FILES)
def test_without_permission(job, newest, name):
    job.chmod(0o755)
    (newest / name).chmod(0)
    assert read_as("nobody", job) == str(OLDER)
    assert read_as("nobody", newest).startswith("UnreadableError")
    job.chmod(0)
    assert read_as("nobody", job).startswith("UnreadableError")
    job.chmod(0o755)

