"""An installation of its own whose libbackstay_files.so says in which processes it was loaded, and
a program that says what it is. Both are compiled here.

In place of the real library, which captures: what is tested is where it is loaded.
"""

import functools
import os
import pathlib
import shutil
import subprocess
import tempfile

from conftest import PROGRAM

LIBRARY = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void) {
  char line[9000], exe[4096] = "";
  const char *log = getenv(LOG), *globs = getenv("BACKSTAY_CAPTURE");
  if (log == NULL || readlink("/proc/self/exe", exe, sizeof exe - 1) < 0) return;
  int size = snprintf(line, sizeof line, "%s %d %s\n", exe, getpid(), globs ? globs : "");
  for (int i = 0; i < size - 1; ++i) if (line[i] == '\n') line[i] = ';';
  int to = open(log, O_WRONLY | O_APPEND | O_CREAT, 0600);
  if (write(to, line, (size_t)size) != size) _exit(99);
  close(to);
}
"""

# Arguments: "exit N", "signal N", "wait" (for SIGTERM), "spawn WORDS", or none.
SHOW = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
static const char* of(const char* name) { return getenv(name) ? getenv(name) : ""; }
static void end(int number) { _exit(number + 1); }
int main(int count, char** words) {
  char name[17] = "";
  prctl(PR_GET_NAME, name);
  printf("argv0=%s name=%s pid=%d job=%s default=%s program=%s dir=%s socket=%s "
         "preload=%s\n", words[0], name, getpid(), of("BACKSTAY_JOB"), of("BACKSTAY_DEFAULT_JOB"),
         of("BACKSTAY_PROGRAM"), of("BACKSTAY_DIR"),
         of("BACKSTAY_AGENT_SOCKET"), of("LD_PRELOAD"));
  if (count > 1 && strcmp(words[1], "wait") == 0) signal(SIGTERM, end);
  fflush(stdout);
  if (count > 2 && strcmp(words[1], "exit") == 0) return atoi(words[2]);
  if (count > 2 && strcmp(words[1], "signal") == 0) raise(atoi(words[2]));
  if (count > 2 && strcmp(words[1], "spawn") == 0) { execvp(words[2], words + 2); return 98; }
  while (count > 1 && strcmp(words[1], "wait") == 0) pause();
  return 0;
}
"""


made = tempfile.TemporaryDirectory(prefix="backstay-compiled-")


@functools.cache
def compiled_once(source, *options):
    to = pathlib.Path(tempfile.mkdtemp(dir=made.name)) / "it"
    subprocess.run(["cc", *options, "-x", "c", "-", "-o", to], input=source, text=True, check=True,
                   timeout=60)
    return to


def compiled(source, to, *options):
    return shutil.copy2(compiled_once(source, *options), to)


class Installation:
    def __init__(self, world):
        self.world = world
        self.bin = world.folder / "installed" / "bin"
        self.bin.mkdir(parents=True)
        self.backstay = shutil.copy2(os.path.realpath(PROGRAM), self.bin / "backstay")
        agent = pathlib.Path(os.path.realpath(PROGRAM)).with_name("backstayd")
        self.library = compiled(LIBRARY, self.bin / "libbackstay_files.so", "-shared", "-fPIC",
                                '-DLOG="LOADED"')
        self.own = compiled(LIBRARY, world.folder / "own.so", "-shared", "-fPIC", '-DLOG="OWN"')
        self.show = compiled(SHOW, world.folder / "show")
        self.env = {**world.env, "LOADED": str(world.folder / "loaded"),
                    "OWN": str(world.folder / "owns"), "BACKSTAY_AGENT_PROGRAM": str(agent)}

    def command(self, *words):
        return [str(self.backstay), *map(str, words)]

    def run(self, *words, env=None, cwd=None, seconds=60):
        """Once more where MPICH's launcher ended by SIGPIPE (docs/debts.md)."""
        done = subprocess.run(self.command(*words), env={**self.env, **(env or {})},
                              cwd=cwd or self.world.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=seconds)
        if "exit code 141, as for signal 13); restart" in done.stderr:
            for log in self.world.folder.glob("loaded*"):
                log.unlink()
            return self.run(*words, env=env, cwd=cwd, seconds=seconds)
        return done

    def loaded(self, log="loaded"):
        """(program, process id, patterns) of each process that the library was loaded in."""
        path = self.world.folder / log
        return [tuple(line.split(" ", 2)) for line in path.read_text().splitlines()] if path.exists(
        ) else []


def shown(output):
    """The words of the program `show`, a dictionary for each process."""
    return [dict(word.split("=", 1) for word in line.split()) for line in output.splitlines()
            if line.startswith("argv0=")]
