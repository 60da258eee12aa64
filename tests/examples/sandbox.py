"""A place of its own for a test with a real agent: folder, socket and configuration.

Nothing outside the folder is touched, and the agent that the programs started is ended at the end:
it is asked for its process id through the socket's peer credentials.
"""

import os
import select
import shutil
import signal
import socket
import struct
import tempfile
from pathlib import Path


class Sandbox:
    def __init__(self, agent_program: str, **settings: object):
        self.folder = Path(tempfile.mkdtemp(prefix="backstay-test-"))
        self.socket = self.folder / "agent.sock"
        self.storage = self.folder / "storage"
        self.environment = dict(os.environ)
        self.set(BACKSTAY_DIR=self.storage, BACKSTAY_AGENT_SOCKET=self.socket,
                 BACKSTAY_AGENT_PROGRAM=agent_program,
                 BACKSTAY_AGENT_LOG_FILE=self.folder / "agent.log", BACKSTAY_AGENT_IDLE_EXIT_S=60,
                 BACKSTAY_POOL_SIZE_MIB=64, BACKSTAY_POOL_BUFFER_MIB=1, BACKSTAY_JOB="test")
        if os.geteuid() == 0:
            self.set(OMPI_ALLOW_RUN_AS_ROOT=1, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
        self.set(**settings)

    def set(self, **settings: object) -> None:
        self.environment.update({name: str(value) for name, value in settings.items()})

    def agent_pid(self) -> int | None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
            try:
                probe.connect(str(self.socket))
            except OSError:
                return None
            pid, _, _ = struct.unpack("3i",
                                      probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return pid

    def stop_agent(self, timeout_s: float = 30) -> None:
        """SIGTERM and wait; the agent drains first."""
        pid = self.agent_pid()
        if pid is None:
            return
        handle = os.pidfd_open(pid)
        try:
            os.kill(pid, signal.SIGTERM)
            if not select.select([handle], [], [], timeout_s)[0]:
                os.kill(pid, signal.SIGKILL)
                raise AssertionError(f"the agent did not end within {timeout_s} s of "
                                     f"SIGTERM\n{self.log()}")
        finally:
            os.close(handle)

    def log(self) -> str:
        path = self.folder / "agent.log"
        return path.read_text(errors="replace") if path.is_file() else "(no agent log)"

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, kind, *_) -> None:
        if kind is not None:
            print(f"--- agent log\n{self.log()}", flush=True)
        try:
            self.stop_agent()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
