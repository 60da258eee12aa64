"""Messages name the option that is the cause; a package that is broken is a message too."""

import re

import pytest
from backstay.cli.pictures import needs
from backstay.cli.usage import CommandError
from runner import run


@pytest.mark.parametrize("words, option", [
    (("interval", "--cost", 300, "--mtti", 86400, "--restart", "1e49"), "--restart"),
    (("interval", "--cost", "1e49", "--mtti", 86400), "--cost"),
    (("interval", "--cost", 300, "--mtti", 86400, "--interval", 3e6),
     r"--interval must not be longer than --solve \(2592000 s\), not"),
    (("survive", "--nodes", 64, "--replicas", 2, "--target", 99.9),
     "--target must be above 0 and below 1, not"),
    (("cost", "--nodes", 4, "--replicas", 4), "--replicas"),
    (("cost", "--nodes", 15, "--parity", "14+2"), "--parity"),
    (("advise", "--nodes", 64, "--saved", "1e-30", "--storage-bandwidth", 1e9, "--mtti", 86400,
      "--copy-bandwidth", 1e10, "--disk-bandwidth",
      1e9, "--network-bandwidth", 1e9), "--saved"),
])  # fmt: skip
def test_the_cause_is_named(words, option):
    code, out, err = run(*words)
    assert (code, out) == (2,
                           "") and err.count("\n") == 1 and re.match(rf"backstay plan {words[0]}: "
                                                                     rf"{option} ", err), err


def test_as_many_nodes_as_needed_are_enough():
    assert run("cost", "--nodes", 4, "--replicas", 3)[0] == run("cost", "--nodes", 16, "--parity",
        "14+2")[0] == 0


@pytest.mark.parametrize("error",
                         [ImportError("libz.so: cannot open\nshared object"),
                          ModuleNotFoundError("No module named 'six'", name="six")])
def test_a_broken_package_is_a_message(error):
    with pytest.raises(CommandError,
                       match="^matplotlib cannot be imported: .*pip install --force-reinstall "
                             "matplotlib"):
        with needs("matplotlib", "backstay plan figures"):
            raise error
