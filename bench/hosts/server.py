"""One central checkpoint server: takes each connection's bytes to a file of its own, synced, and
answers one byte.

    server.py PORT FOLDER
"""

import os
import pathlib
import socket
import sys
import threading


def serve(connection, path):
    buffer = bytearray(1 << 20)
    with connection, open(path, "wb", buffering=0) as file:
        while count := connection.recv_into(buffer):
            file.write(memoryview(buffer)[:count])
        os.fsync(file.fileno())
        connection.sendall(b"k")


def main():
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(exist_ok=True)
    with socket.create_server(("", int(sys.argv[1]))) as listener:
        print("ready", flush=True)
        while True:
            connection, (address, _) = listener.accept()
            threading.Thread(target=serve, args=(connection, folder / address), daemon=True).start()


main()
