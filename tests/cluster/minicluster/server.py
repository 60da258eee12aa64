#!/usr/bin/env python3
"""Process 1 of a host (or of the cluster itself): runs commands for users who may open its socket.

    server.py SOCKET NAME

It takes the place of sshd on a real host, so that mpirun can start processes from inside one host
on another. Commands run as the user who asks; only the owner may, unless he opens the socket to
others (chmod). One connection is one command (see remote.py): the request carries the three
standard descriptors; numbers that come later are signals for the command; the answer is its exit
status. A connection that closes early hangs the command up (SIGHUP), as a terminal does. The server
reaps everything in its process namespace; when it is killed, the kernel kills all processes of the
host with it, at once.
"""

import array
import fcntl
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import termios

REQUEST_BYTES_MAX = 1 << 20


def receive_request(connection):
    data, ancillary, _, _ = connection.recvmsg(REQUEST_BYTES_MAX, socket.CMSG_SPACE(3 * 4))
    descriptors = array.array("i")
    for level, kind, payload in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(payload)
    return json.loads(data), list(descriptors)


def own_terminal():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def identity_of(asker):
    """Options of Popen: nothing for our own user."""
    credentials = asker.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, group = struct.unpack("3i", credentials)
    return {} if user == os.geteuid() else {"user": user, "group": group, "extra_groups": []}


def start(request, descriptors, asker):
    """The command in a session of its own; raises OSError where it cannot be started."""
    folder = request["folder"] if os.path.isdir(request["folder"]) else "/"
    return subprocess.Popen(
        request["command"], env=request["environment"], cwd=folder, start_new_session=True,
        stdin=descriptors[0], stdout=descriptors[1], stderr=descriptors[2],
        preexec_fn=own_terminal if request["terminal"] else None, **identity_of(asker))


class Server:
    def __init__(self, path):
        self.commands = {}  # process id -> (Popen, connection)
        self.selector = selectors.DefaultSelector()
        self.listen(path)
        self.watch_children()

    def listen(self, path):
        """The socket appears complete under its name: who can connect meets a server."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        os.umask(0o077)
        listener.bind(path + ".new")
        listener.listen(128)
        os.rename(path + ".new", path)
        os.umask(0o022)
        self.selector.register(listener, selectors.EVENT_READ, self.accept)

    def watch_children(self):
        read, write = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.selector.register(read, selectors.EVENT_READ, self.reap)

    def serve(self):
        while True:
            for key, _ in self.selector.select():
                key.data(key.fileobj)

    def accept(self, listener):
        connection, _ = listener.accept()
        self.selector.register(connection, selectors.EVENT_READ, self.begin)

    def begin(self, connection):
        descriptors = []
        try:
            request, descriptors = receive_request(connection)
            command = start(request, descriptors, connection)
        except (OSError, ValueError) as error:  # ValueError: closed without a request
            self.answer(connection, {"error": getattr(error, "strerror", None) or str(error)})
        else:
            self.commands[command.pid] = (command, connection)
            self.selector.modify(connection, selectors.EVENT_READ, self.control)
        for descriptor in descriptors:
            os.close(descriptor)

    def control(self, connection):
        """A signal for the command, or the end of the one who asked for it."""
        if connection.fileno() < 0:
            return  # reap() has just answered it: both were ready at once
        try:
            data = connection.recv(4)
        except OSError:
            data = b""
        number = struct.unpack("i", data)[0] if data else signal.SIGHUP
        for command, asker in self.commands.values():
            if asker is connection:
                try:
                    os.killpg(command.pid, number)
                except ProcessLookupError:
                    pass
        if not data:
            self.selector.unregister(connection)
            connection.close()

    def reap(self, wakeup):
        try:
            os.read(wakeup, 4096)
        except BlockingIOError:
            pass
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self.commands:
                command, connection = self.commands.pop(pid)
                command.returncode = os.waitstatus_to_exitcode(status)
                self.answer(connection, {"status": command.returncode})

    def answer(self, connection, message):
        if connection.fileno() < 0:
            return
        try:
            connection.send(json.dumps(message).encode())
        except OSError:
            pass  # the reader has gone
        self.selector.unregister(connection)
        connection.close()


if __name__ == "__main__":
    socket.sethostname(sys.argv[2])
    Server(sys.argv[1]).serve()
