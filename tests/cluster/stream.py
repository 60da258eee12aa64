"""A plain TCP stream between two hosts: what a link carries. Prints bytes a second at the receiver.

    stream.py receive PORT          stream.py send HOST PORT BYTES
"""

import socket
import sys
import time


def receive(port):
    with socket.create_server(("", port)) as listener:
        print("ready", flush=True)
        connection, _ = listener.accept()
        with connection:
            buffer = bytearray(1 << 20)
            received, began = connection.recv_into(buffer), time.monotonic()
            total = 0  # what comes after the clock has been started
            while received:
                received = connection.recv_into(buffer)
                total += received
            print(total / (time.monotonic() - began))


def send(host, port, count):
    block = bytes(1 << 20)
    with socket.create_connection((host, port)) as connection:
        for _ in range(count // len(block)):
            connection.sendall(block)


if sys.argv[1] == "receive":
    receive(int(sys.argv[2]))
else:
    send(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
