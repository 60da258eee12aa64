"""Runs a command on a host through the host's server (server.py). Works from outside and from any
other host.
"""

import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import termios
import tty
from pathlib import Path

from .errors import ClusterError

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
             signal.SIGUSR2)
PRIVATE = ("TMPDIR", "XDG_RUNTIME_DIR", "HOSTNAME")  # name things that a host has of its own
HOST_WENT_DOWN = 255  # as ssh, when its connection breaks


def connect(path):
    """A connection to the server at `path`, or None if no process listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    return connection


def server_pid(path):
    """Process id of the server, seen from here: reported by the kernel, hence never that of another
    process.
    """
    connection = connect(path)
    if connection is None:
        return None
    with connection:
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED,
                                            struct.calcsize("3i"))
    return struct.unpack("3i", credentials)[0]


def caller_environment():
    return {name: value for name, value in os.environ.items() if name not in PRIVATE}


def login_environment():
    """What a remote shell gives: nothing of the caller's."""
    kept = {name: os.environ[name] for name in ("HOME", "USER", "LOGNAME", "LANG", "BACKSTAY_MINI")
            if name in os.environ}
    return {**kept, "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


def request(path, command, descriptors, environment, terminal=False):
    connection = connect(path)
    if connection is None:
        raise ClusterError(f"{Path(path).stem}: the host is down; start it again with: mini boot "
                           f"{Path(path).stem}")
    message = json.dumps({"command": list(command), "environment": environment,
                          "folder": os.getcwd(), "terminal": terminal}).encode()
    try:
        socket.send_fds(connection, [message], descriptors)
    except OSError as error:
        raise ClusterError(f"{Path(path).stem}: the command cannot be sent: {error.strerror}") from error
    return connection


def forward_signals(connection):
    """Blocked until now, so that one that came early is handed on too."""
    def forward(number, _):
        try:
            connection.send(struct.pack("i", number))
        except OSError:
            pass  # the command has just ended
    for number in FORWARDED:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup stays nohup
            signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)


def wait(connection, name):
    """Exit status of the command as a shell gives it."""
    try:
        answer = connection.recv(4096)
    except ConnectionResetError:
        answer = b""
    if not answer:
        print(f"{name}: the host went down", file=sys.stderr)
        return HOST_WENT_DOWN
    result = json.loads(answer)
    if "error" in result:
        print(f"{name}: the command cannot be started: {result['error']}", file=sys.stderr)
        return 127
    return result["status"] if result["status"] >= 0 else 128 - result["status"]


def run(path, command, environment):
    """With the caller's standard input and output, and its signals handed on."""
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    with request(path, command, [0, 1, 2], environment) as connection:
        forward_signals(connection)
        return wait(connection, Path(path).stem)


def shell(path, command, environment):
    """`command` on a terminal of its own, joined to ours."""
    master, slave = os.openpty()
    copy_size(master)
    with request(path, command, [slave] * 3, environment, terminal=True) as connection:
        os.close(slave)
        signal.signal(signal.SIGWINCH, lambda *_: copy_size(master))
        before = termios.tcgetattr(0)
        try:
            tty.setraw(0, termios.TCSADRAIN)  # what was typed ahead is kept
            join_terminals(master)
        finally:
            termios.tcsetattr(0, termios.TCSADRAIN, before)
        return wait(connection, Path(path).stem)


def copy_size(master):
    fcntl.ioctl(master, termios.TIOCSWINSZ, fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8)))


def join_terminals(master):
    while True:
        for source in select.select([0, master], [], [])[0]:
            try:
                data = os.read(source, 65536)
            except OSError:  # the other side of a terminal has closed
                data = b""
            if not data:
                return
            os.write(master if source == 0 else 1, data)


def output(path, command, environment=None):
    """(exit status, what it wrote): for our own small commands."""
    read, write = os.pipe()
    with open("/dev/null", "rb") as nothing, open(read, "rb") as pipe:
        try:
            connection = request(path, command, [nothing.fileno(), write, write],
                                 environment or login_environment())
        finally:
            os.close(write)
        with connection:
            text = pipe.read().decode(errors="replace")
            return wait(connection, Path(path).stem), text


def must(path, command, environment=None):
    """As output(), with an error for any status but 0."""
    status, text = output(path, command, environment)
    if status != 0:
        raise ClusterError(f"{Path(path).stem}: {' '.join(command)[:200]}: "
                           f"{text.strip() or f'exit status {status}'}")
    return text
