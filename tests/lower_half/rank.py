"""Started by mpirun as each rank: lends the test a line to the boot program, and becomes it.

Usage: rank.py SOCKET COMMAND...; in COMMAND {rank} and {control} are replaced.
"""

import os
import socket
import sys

number = os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
line.sendall(f"{number} {os.getpid()}\n".encode())
os.set_inheritable(line.fileno(), True)
command = [word.format(rank=number, control=line.fileno()) for word in sys.argv[2:]]
os.execv(command[0], command)
