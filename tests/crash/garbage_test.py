#!/usr/bin/env python3
"""Nonsense on the agent's socket: it never crashes, never grows without limit, and still serves.

Usage: garbage_test.py CRASH_JOB BACKSTAYD [unittest arguments]; BACKSTAY_SEED replays,
BACKSTAY_GARBAGE says how many packets.
"""

import os
import random
import select
import socket
import struct
from pathlib import Path

from process_case import SANITIZED, ProcessCase, main

SEED = int(os.environ.get("BACKSTAY_SEED", 20261120))
PACKETS = int(os.environ.get("BACKSTAY_GARBAGE", 4000))
CORPUS = Path(__file__).parent.parent / "fuzz" / "corpus" / "message"
HELLO, END, QUERY, RESTART, FETCH, ADMIN, STATUS, SHUTDOWN, ANSWER = 1, 4, 5, 7, 11, 14, 15, 16, 24
POOL_MIB, SLACK_MIB = 24, 64


def packet(kind, body=b"", protocol=1):
    return struct.pack("<HHI", kind, protocol, len(body)) + body


def text(value):
    return struct.pack("<H", len(value)) + value.encode()


class Garbage(ProcessCase):
    def setUp(self):
        super().setUp()
        self.agent = self.start_agent()
        self.links = []
        self.addCleanup(lambda: [link.close() for link in self.links])

    def connect(self, *packets):
        link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.links.append(link)
        link.settimeout(30)
        link.connect(str(self.socket))
        for one in packets:
            link.send(one)
        return link

    def hello(self, job="garbage", rank=0, ranks=1, run=1):
        return packet(HELLO, text("0.1.0") + text(job) + struct.pack(
            "<QIIIIIIi", run, rank, ranks, rank, ranks, 0, 1, os.getpid()) + text(str(self.store)) +
            struct.pack("<I", 2))

    def still_serves(self):
        self.assertIsNone(self.agent.poll(), self.agent_log())
        link = self.connect(packet(ADMIN), packet(STATUS))
        kind, protocol, length = struct.unpack("<HHI", link.recv(1 << 16)[:8])
        self.assertEqual((kind, protocol), (ANSWER, 1))
        status = Path(f"/proc/{self.agent.pid}/status").read_text()
        resident = int(status.split("VmRSS:")[1].split()[0]) // 1024
        if not SANITIZED:
            self.assertLess(resident, POOL_MIB + SLACK_MIB, "MiB resident")
        run = self.run_job(2, 4, 2, "wait=1")
        self.assertEqual(run.code, 0, f"{run}\n{self.agent_log()}")
        self.assertEqual(run.lines("local")[-1]["code"], 0, run)

    def mutated(self, dice, seeds):
        one = bytearray(dice.choice(seeds))
        for _ in range(dice.randint(1, 4)):
            if len(one) > 8:
                one[dice.randrange(8, len(one))] = dice.choice((0, 1, 0x7f, 0x80, 0xff,
                    dice.randrange(256)))
        change = dice.randrange(6)
        if change == 0:
            one = one[:dice.randrange(len(one) + 1)]
        if change == 1:
            one += dice.randbytes(dice.randrange(64))
        if change < 4 and len(one) >= 8:  # the length is right, only the content is not
            struct.pack_into("<I", one, 4, len(one) - 8)
        if change == 5:
            one[dice.randrange(min(8, len(one)))] ^= 1 << dice.randrange(8)
        return bytes(one)

    def test_random_and_mutated_packets(self):
        print(f"seed {SEED} (replay: BACKSTAY_SEED={SEED})", flush=True)
        dice = random.Random(SEED)
        seeds = [path.read_bytes() for path in sorted(CORPUS.iterdir())]
        # Another hello would make folders outside of ours, and a shutdown end the agent, as it
        # should.
        seeds = [one for one in seeds if len(one) > 2 and struct.unpack("<H",
            one[:2])[0] not in (HELLO, SHUTDOWN)]
        links = []
        for number in range(PACKETS):
            if len(links) < 12:
                greeting = dice.choice(([], [packet(ADMIN)],
                                        [self.hello(f"job{dice.randrange(4)}", run=number + 1)]))
                links.append(self.connect(*greeting))
            link = dice.choice(links)
            one = self.mutated(dice,
                               seeds) if dice.random() < 0.8 else dice.randbytes(
                                   dice.choice((0, 3, 8, 9, 200, 60000)))
            if one[:2] in (struct.pack("<H", HELLO), struct.pack("<H", SHUTDOWN)):
                continue
            try:
                link.send(one or b"\0")
                while select.select([link], [], [], 0)[0]:
                    if not link.recv(1 << 16):
                        raise ConnectionError
            except OSError:
                links.remove(link)
                link.close()
        for link in links:
            link.close()
        self.still_serves()

    def test_hellos_that_make_no_sense(self):
        for rank, ranks in ((1, 1), (0, 0), (5, 2), (0xffffffff, 0xffffffff)):
            with self.subTest(rank=rank, ranks=ranks):
                answer = self.connect(self.hello(rank=rank, ranks=ranks)).recv(1 << 16)
                self.assertEqual(struct.unpack("<H", answer[:2])[0], 25, "failure")
        for job in ("", "../x", "a/b", ".", "x" * 300, "a\nb"):
            with self.subTest(job=job):
                answer = self.connect(self.hello(job=job)).recv(1 << 16)
                self.assertEqual(struct.unpack("<H", answer[:2])[0], 25, "failure")
        self.assertEqual([path.name for path in self.store.rglob("v*")], [])
        self.still_serves()

    def test_another_protocol_version_is_named(self):
        answer = self.connect(packet(HELLO, b"\1\2\3", protocol=2)).recv(1 << 16)
        self.assertEqual(struct.unpack("<H", answer[:2])[0], 25)
        self.assertIn(b"protocol 2", answer)
        self.still_serves()

    def flood(self, link, one, count):
        """Sends without ever reading, until `count` or until the agent cuts us off or stops taking.
        """
        link.setblocking(False)
        for _ in range(count):
            try:
                link.send(one)
            except BlockingIOError:
                if not select.select([], [link], [], 2)[1]:
                    return
            except OSError:
                return

    def test_a_tool_that_never_reads(self):
        self.flood(self.connect(packet(ADMIN)), packet(STATUS), 100_000)
        self.still_serves()

    def test_a_rank_that_never_reads(self):
        for one in (packet(QUERY, struct.pack("<Q", 1)), packet(FETCH, struct.pack("<QI", 1, 0))):
            self.flood(self.connect(self.hello(job=f"flood{one[0]}")), one, 100_000)
        self.still_serves()

    def test_two_hundred_connections(self):
        for _ in range(100):
            self.connect()
            self.connect(packet(ADMIN), packet(STATUS))
        self.still_serves()

    def test_packets_longer_than_allowed(self):
        link = self.connect()
        link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        try:
            link.send(packet(END, bytes(150_000)))
        except OSError as error:
            self.skipTest(f"this system takes no such packet: {error}")
        self.still_serves()


if __name__ == "__main__":
    main()
