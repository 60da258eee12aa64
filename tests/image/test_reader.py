"""numpy alone reads what the page shows, and what the boot program wrote."""

import os
import pathlib
import re
import sys

import numpy as np
import pytest
from backstay.format import FormatError, NotFoundError
from backstay.format.image import read_image

FOLDER = pathlib.Path(__file__).parent
PAGE = FOLDER.parents[1] / "docs" / "format" / "image.md"
LINE = re.compile(r"    ([0-9a-f]{4})  ((?:[0-9a-f]{2} ?)+)$")


def example():
    data = bytearray(6920)
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if match := LINE.match(line):
            row = bytes.fromhex(match[2])
            data[int(match[1], 16) : int(match[1], 16) + len(row)] = row
    data[0:4] = b"page"
    return bytes(data)


def test_example_of_the_page():
    image = read_image(example())
    assert image.text(image.identity["program"]) == "/bin/a"
    assert image.identity["time_ns"] == 1_795_000_000_000_000_000
    assert image.identity["umask"] == 0o22
    assert image.threads["tid"].tolist() == [41]
    assert image.threads[0]["name"] == b"a"
    assert image.handlers[14]["handler"] == 0x401000
    assert image.memory(0x7F0000001FFC, 8) == b"\0\0\0\0page"
    with pytest.raises(NotFoundError):
        image.memory(0x7F0000002FFC, 8)


def test_damage_is_noticed():
    good = example()
    for at in range(4096, len(good)):
        damaged = bytearray(good)
        damaged[at] ^= 1
        with pytest.raises(FormatError):
            read_image(bytes(damaged))


def test_what_the_boot_program_wrote(tmp_path):
    sys.argv = ["booted", os.environ["BACKSTAY_BOOT"]]
    sys.path.insert(0, str(FOLDER))
    import booted

    script = (
        "import ctypes, time\ntext = ctypes.create_string_buffer(b'where is it?' * 1000)\n"
        "print(hex(ctypes.addressof(text)), flush=True)\ntime.sleep(60)"
    )
    with open(tmp_path / "out", "wb") as out:
        life = booted.Booted(
            ["--image", tmp_path / "image", "--", "/usr/bin/python3", "-c", script],
            out=out,
            cwd=tmp_path,
        )
    while not (tmp_path / "out").read_bytes().endswith(b"\n"):
        assert life.process.poll() is None
    result = life.cut()
    pid = life.process.pid
    life.kill()
    image = read_image(np.memmap(tmp_path / "image", "u1", "r"))
    assert len(image.data) == result["bytes"]
    assert image.runs["pages"].sum() == result["pages"]
    assert image.identity["pid"] == pid
    assert image.text(image.identity["cwd"]) == str(tmp_path)
    assert any(image.text(file["path"]).endswith("/libc.so.6") for file in image.files)
    address = int((tmp_path / "out").read_text(), 16)
    assert image.memory(address, 12000) == b"where is it?" * 1000
    leader = image.threads[0]
    area = next(a for a in image.areas if a["start"] <= leader["registers"][15] < a["end"])
    assert area["flags"] == 1, "its stack pointer lies in the stack"
