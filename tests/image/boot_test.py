#!/usr/bin/env python3
"""Programs behave under the boot program as they do without it.

Usage: boot_test.py BOOT STATIC_PROGRAM
The test compares exit code, standard output and standard error, byte for byte.
"""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BOOT, STATIC = sys.argv[1], sys.argv[2]
PYTHON = "/usr/bin/python3"
TIMEOUT_S = 60


def run(command, **kwargs):
    kwargs.setdefault("input", b"")
    done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, **kwargs)
    return done.returncode, done.stdout, done.stderr


class Boot(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)

    def same(self, *command, **kwargs):
        kwargs.setdefault("cwd", self.scratch)
        native = run(command, **kwargs)
        for options in ([], ["--no-vdso"]):
            self.assertEqual(run([BOOT, *options, "--", *command], **kwargs), native, command)
        return native

    def refused(self, words, *command, code=126):
        got, out, error = run([BOOT, "--", *command], cwd=self.scratch)
        self.assertEqual((got, out), (code, b""))
        self.assertIn(words, error.decode())
        self.assertTrue(error.startswith(b"backstay: "), error)

    def test_exit_codes(self):
        self.same("/bin/true")
        self.same("/bin/false")
        self.assertEqual(self.same("/bin/sh", "-c", "exit 77")[0], 77)

    def test_found_in_path(self):
        self.assertEqual(self.same("echo", "a b", "", "c")[1], b"a b  c\n")

    def test_signals_end_it(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
            self.assertEqual(self.same("/bin/sh", "-c", f"kill -{number.value} $$")[0], -number)

    def test_standard_input(self):
        self.same("/usr/bin/sort", input=b"b\na\n" * 1000)

    def test_environment_and_arguments(self):
        environment = {**os.environ, "EMPTY": "", "A": "b=c"}
        self.same("/usr/bin/env", env=environment)
        self.same("/usr/bin/env", env={})
        self.same("/bin/sh", "-c", 'echo "$0" "$@"', "name", *[f"argument {i}" for i in range(500)])

    def test_what_a_process_knows_of_itself(self):
        self.same("/bin/cat", "/proc/self/comm", "/proc/self/cmdline")
        self.same("/bin/pwd")

    def test_shell_with_helpers(self):
        self.same(
            "/bin/sh",
            "-c",
            "for i in 1 2 3; do echo $i | cat; done; (exit 3) || echo $?; ls /nosuch",
        )

    def test_python(self):
        self.same(
            PYTHON,
            "-c",
            "import sys, json, threading; print(json.dumps(sys.argv), threading.active_count())",
            "x",
            "y",
        )
        self.same(
            PYTHON,
            "-c",
            "import time; assert time.time() > 1e9 and time.monotonic() > 0; raise SystemExit(3)",
        )

    def test_script(self):
        script = self.scratch / "script"
        script.write_text(f"#!{PYTHON} -S\nimport sys\nprint(sys.argv, sys.flags.no_site)\n")
        script.chmod(0o755)
        self.same(str(script), "one", "two")
        self.same("./script")

    def test_gzip(self):
        (self.scratch / "file").write_bytes(bytes(i * i % 251 for i in range(1 << 20)))
        self.same("/bin/gzip", "-n", "-c", "file")

    @unittest.skipUnless(shutil.which("sqlite3"), "sqlite3 is not installed")
    def test_sqlite(self):
        self.same(
            "sqlite3",
            ":memory:",
            "create table t(a); insert into t values(1),(2); select sum(a), count(*) from t;",
        )

    def test_not_found(self):
        self.refused("nosuchprogram: command not found", "nosuchprogram", code=127)
        self.refused("/nosuch/program: not found", "/nosuch/program", code=127)

    def test_static_program(self):
        self.refused("is linked statically", STATIC)

    def test_set_user_id(self):
        program = self.scratch / "privileged"
        shutil.copy("/bin/true", program)
        program.chmod(0o755 | stat.S_ISUID)
        self.refused(f"{program} is a set-user-id", str(program))

    def test_not_a_program(self):
        text = self.scratch / "text"
        text.write_text("hello, this is no program at all, nor a script of any kind")
        text.chmod(0o755)
        self.refused("is not a program for this machine", str(text))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
