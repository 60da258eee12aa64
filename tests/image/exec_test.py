#!/usr/bin/env python3
"""Programs that replace themselves (exec) are saved as what they have become.

Usage: exec_test.py BOOT PROGRAMS_FOLDER [TEST ...]
BACKSTAY_SEED repeats a run; BACKSTAY_LIVES sets how often the test tries each program.
"""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import booted

PROGRAMS = Path(sys.argv[2]).resolve()
TRIES = int(os.environ.get("BACKSTAY_LIVES", "3"))
PYTHON = "/usr/bin/python3"
# Says what it is, and ends when a file is there.
WAITS = (
    "import os, sys\nprint(sys.argv[1:], os.environ.get('A'), flush=True)\n"
    "while not os.path.exists('go'): pass\nprint('went on')"
)

# By its own link a program finds what lies beside it, and starts itself again.
OWN_LINK = """
import ctypes, os, subprocess
own = "/proc/self/exe"
print(os.readlink(own), os.readlink("/proc/thread-self/exe"))
print(os.readlink(f"/proc/{os.getpid()}/exe"))
print(os.path.realpath(own), os.readlink("/proc/self/root"))
libc = ctypes.CDLL(None, use_errno=True)
short = ctypes.create_string_buffer(b"-" * 8)
print(libc.readlink(own.encode(), short, 5), short.raw)
print(libc.readlinkat(-100, own.encode(), short, 3), short.raw)
print(libc.readlink(ctypes.c_void_p(8), short, 5), ctypes.get_errno())
print(libc.readlink(own.encode(), ctypes.c_void_p(8), 5), ctypes.get_errno())
print(subprocess.run([own, "-c", "print('a child')"], capture_output=True))
"""


class Exec(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)
        self.image = self.scratch / "image"
        (self.scratch / "waits.py").write_text(WAITS)

    def script(self, text, name="script.sh"):
        path = self.scratch / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def saved_in_the_end(self, *command, says, env=None, prints="went on\n"):
        """The last program of `command` prints a line, is cut and killed, and goes on."""
        life = booted.Booted(
            ["--image", self.image, "--", *command],
            out=subprocess.PIPE,
            cwd=self.scratch,
            env={**os.environ, **(env or {})},
        )
        with life.process.stdout as out:
            self.assertEqual(out.readline().decode(), says)
            self.assertIsNotNone(life.cut())
            life.kill()
        (self.scratch / "go").touch()
        with open(self.scratch / "again", "wb") as out:
            life = booted.Booted(["--restore", self.image], out=out, cwd="/")
        self.assertEqual(life.end(), 0)
        self.assertEqual((self.scratch / "again").read_text(), prints)

    def test_wrapper_script(self):
        script = self.script(f'#!/bin/sh\nA=b\nexport A\nexec {PYTHON} waits.py "$@"\n')
        self.saved_in_the_end(script, "one", "two words", says="['one', 'two words'] b\n")

    def test_wrapper_of_a_wrapper(self):
        self.script(f'#!/bin/sh\nexec {PYTHON} waits.py "$@"\n', "inner")
        self.script('#!/bin/sh\nx=$(echo inner)\nexec ./$x "$@"\n', "outer")
        self.saved_in_the_end("./outer", "x", says="['x'] None\n")

    def test_script_by_env(self):
        script = self.script(f"#!/usr/bin/env python3\n{WAITS}\n")
        path = {"PATH": "/usr/bin:/bin"}
        self.saved_in_the_end(script, "one", says="['one'] None\n", env=path)

    def test_env(self):
        self.saved_in_the_end("env", "A=c", PYTHON, "waits.py", says="[] c\n")

    def test_python_that_replaces_itself(self):
        code = f"import os; os.execv('{PYTHON}', ['python', 'waits.py', '1'])"
        self.saved_in_the_end(PYTHON, "-c", code, says="['1'] None\n")

    def test_the_link_to_its_own_file(self):
        by_itself = f"import os\nos.execv('/proc/self/exe', ['python', '-c', {OWN_LINK!r}])"
        for code in (OWN_LINK, by_itself):
            command = [PYTHON, "-c", code]
            with open(self.scratch / "out", "wb") as out:
                life = booted.Booted(["--", *command], out=out)
            self.assertEqual(
                (life.end(), (self.scratch / "out").read_text().splitlines()),
                (0, booted.native(command)[1].decode().splitlines()),
            )

    def test_its_own_file_after_a_restart(self):
        self.script(WAITS + "; print(os.readlink('/proc/self/exe'))", "waits.py")
        own = os.path.realpath(PYTHON)
        program = os.path.relpath(PYTHON, self.scratch)
        code = "import os; os.execv('/proc/self/exe', ['python', 'waits.py'])"
        prints = f"went on\n{own}\n"
        self.saved_in_the_end(program, "-c", code, says="[] None\n", prints=prints)

    def test_programs_that_go_on_after_each_exec(self):
        program = PROGRAMS / "image_exec"
        env = {**os.environ, "PROGRAM": str(program)}
        expected = booted.native([program], env=env)
        for options in ([], ["--no-vdso", "--no-scan"]):
            with open(self.scratch / "out", "wb") as out:
                life = booted.Booted([*options, "--", program], out=out, env=env)
            self.assertEqual((life.end(), (self.scratch / "out").read_bytes()), expected)

    def test_cuts_at_any_moment(self):
        """Many cuts fall into an exec; none of them ends the program or changes it."""
        program = PROGRAMS / "image_exec"
        env = {**os.environ, "PROGRAM": str(program)}
        expected = booted.native([program], env=env)
        cuts = 0
        for _ in range(TRIES):
            with open(self.scratch / "out", "wb") as out:
                life = booted.Booted(["--image", self.image, "--", program], out=out, env=env)
            while life.process.poll() is None:
                try:
                    cuts += life.cut() is not None
                except booted.Refused as refused:
                    self.assertIn("its child", str(refused))
            self.assertEqual((life.end(), (self.scratch / "out").read_bytes()), expected)
        self.assertGreater(cuts, 0)

    def test_kills_between(self):
        """The process id of the first life stands in the environment, so it is not checked."""
        code = (
            "import os, sys, hashlib\nlife, value = int(sys.argv[1]), sys.argv[2]\n"
            "for i in range(20000): value = hashlib.sha256(value.encode()).hexdigest()\n"
            "print(life, value, flush=True)\n"
            f"if life < 12: os.execv('{PYTHON}', ['python', 'lives.py', str(life + 1), value])\n"
        )
        (self.scratch / "lives.py").write_text(code)
        command = [PYTHON, "lives.py", "0", ""]
        expected = booted.native(command, cwd=self.scratch)
        restarts = 0
        for _ in range(TRIES):
            code, out, count = booted.lives(command, cwd=self.scratch, first_s=(0.05, 0.2))
            self.assertEqual((code, out), expected)
            restarts += count
        self.assertGreater(restarts, 0)

    def test_the_kernel_replaces_it_where_the_boot_program_cannot(self):
        privileged = self.scratch / "privileged"
        shutil.copy("/bin/echo", privileged)
        privileged.chmod(0o755 | stat.S_ISUID)
        script = self.script("#!/bin/sh\ntrap '' HUP\nexec \"$@\"\n")
        for target in ([PROGRAMS / "image_static"], [privileged, "x"]):
            command = [script, *target]
            with open(self.scratch / "out", "wb") as out:
                life = booted.Booted(["--", *command], out=out)
            code = life.end()
            self.assertEqual((code, (self.scratch / "out").read_bytes()), booted.native(command))


if __name__ == "__main__":
    booted.seed()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
