# SPDX-License-Identifier: MIT
"""9P messages of a host that means no good, by way of the guest's memory: kernel/p9."""

import mmap
import os
import random
import time
from typing import Callable

from lib.books import Wrong

VERSION, ATTACH, FLUSH, READ = 100, 104, 108, 116
TYPES = [12, 24, 26, 40, 50, 72, 76, VERSION, ATTACH, FLUSH, 110, READ, 118, 120]
ERROR = 7  # the type of a reply that refuses
LAST = 0xfffe  # the tag of the message behind a batch
WAIT = 60  # seconds: a server that has not answered then hangs
EXTREME = [0, 1, 2, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 63]


def number(value: int, size: int) -> bytes:
    """Little endian, of so many bytes."""
    return (value % (1 << 8 * size)).to_bytes(size, "little")


def text(words: str | bytes) -> bytes:
    """With its length before it."""
    data = words.encode() if isinstance(words, str) else words
    return number(len(data), 2) + data


def message(kind: int, tag: int, body: bytes) -> bytes:
    """With its header."""
    return number(7 + len(body), 4) + number(kind, 1) + number(tag, 2) + body


class Script:
    """Messages without end: each opens a file, uses it and closes it, if nothing is changed."""

    def __init__(self, dice: random.Random, files: list[str], words: Callable[[str], str]):
        """words: a text for that file."""
        self.dice, self.files, self.words = dice, files, words
        self.queue: list[tuple[int, bytes]] = []
        self.fid = 0

    def use(self, fid: bytes, file: str) -> tuple[int, bytes]:
        """A message about an open file."""
        d = self.dice
        data = self.words(file).encode()[:900]
        offset = number(d.choice([0, 0, 0, 1, 100, *EXTREME]), 8)
        count = number(d.choice([0, 1, 100, 4096, 65000, 1 << 30, 1 << 31, *EXTREME]), 4)
        return d.choice([
            (READ, fid + offset + count),
            (READ, fid + number(0, 8) + number(65000, 4)),
            (118, fid + number(0, 8) + number(len(data), 4) + data),
            (24, fid + number(0x7ff, 8)),
            (26, fid + number(d.choice([0, 8, 0xffff]), 4) + bytes(12)
                + number(d.choice([0, 0, 1]), 8) + bytes(32)),
            (40, fid + offset + count),
            (50, fid + number(0, 4)),
            (FLUSH, number(d.randrange(1000), 2)),
            (d.choice([72, 76]), fid + text(d.choice(["a", "b", "..", "", "x" * 200])) + bytes(8)),
            (12, fid + number(d.choice([0, 2]), 4)),
            (ATTACH, number(d.randrange(50), 4) + bytes(12)),
        ])

    def begin(self) -> None:
        """The messages of one file."""
        d = self.dice
        self.fid = self.fid % 40 + 1
        fid, file = number(self.fid, 4), d.choice(self.files)
        path = d.choice([file, file, file, os.path.dirname(file), "sys/kernel/tracing/instances"])
        names = [x for x in path.split("/") if x]
        names[d.randrange(len(names) + 1):0] = d.choice([[]] * 20 + [[".."], ["x" * 130], ["a/b"]])
        self.queue = [(110, number(d.choice([0] * 9 + [1]), 4) + fid + number(len(names), 2)
                       + b"".join(map(text, names))),
                      (12, fid + number(d.choice([0, 1, 2, 0x201, 0x801, 0x800, 3]), 4)),
                      *(self.use(fid, file) for _ in range(d.randrange(4)))]
        if d.random() < 0.8:
            self.queue.append((120, fid))
        if d.random() < 0.02:
            size = d.choice([511, 512, 4096, 65536, *EXTREME])
            self.queue += [(VERSION, number(size, 4) + text("9P2000.L")), (ATTACH, bytes(16))]

    def changed(self, body: bytes) -> bytes:
        """It, with a change."""
        d, at = self.dice, self.dice.randrange(len(body) + 1)
        return d.choice([
            lambda: body[:at],
            lambda: body[:at] + d.randbytes(d.choice([1, 4, 300])) + body[at:],
            lambda: body[:at] + number(d.choice(EXTREME), 4) + body[at + 4:],
            lambda: body[:at] + d.randbytes(1) + body[at + 1:],
        ])()

    def any(self) -> str:
        """The next message, as type and body in hexadecimal digits."""
        while not self.queue:
            self.begin()
        kind, body = self.queue.pop(0)
        if self.dice.random() < 0.1:
            body = self.changed(body)
        if self.dice.random() < 0.03:
            kind = self.dice.choice([*TYPES, self.dice.randrange(256)])
        return f"{kind} {body.hex()}"


class Mailbox:
    """The host's end of the mailbox in the guest's memory, which is the file at that path."""

    RING = 131072
    REQUESTS, REPLIES = 4096, 4096 + RING
    WORDS = {"host_epoch": 5, "guest_epoch": 6, "request_head": 8, "request_tail": 9,
             "reply_head": 10, "reply_tail": 11}

    def __init__(self, path: str):
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)
        self.at = next(at for at in range(0, len(self.memory), 4096)
                       if self.memory[at:at + 16] == b"nopl 9P mailbox\0")
        # The guest never sees a part of a word, as it would if struct wrote the bytes.
        self.words = memoryview(self.memory)[self.at:self.at + 48].cast("I")

    def load(self, word: str) -> int:
        """A word of it."""
        return self.words[self.WORDS[word]]

    def store(self, word: str, value: int) -> None:
        """One of the host's words."""
        self.words[self.WORDS[word]] = value % (1 << 32)

    def until(self, happens: Callable[[], bool], what: str) -> None:
        """Wait for the server."""
        end = time.monotonic() + WAIT
        while not happens():
            if time.monotonic() > end:
                raise Wrong(f"9P: {what} did not come in {WAIT} s")
            time.sleep(0.0002)

    def begin(self) -> None:
        """Another client: all files are closed."""
        epoch = (self.load("host_epoch") + 1) % (1 << 32)
        self.store("host_epoch", epoch)
        self.until(lambda: self.load("guest_epoch") == epoch, "a new session")

    def send(self, data: bytes) -> None:
        """Bytes, for which there is room."""
        head = self.load("request_head")
        for i, place in enumerate(range(head, head + len(data))):
            self.memory[self.at + self.REQUESTS + place % self.RING] = data[i]
        self.store("request_head", head + len(data))

    def receive(self) -> bytes:
        """A reply, or b"" if there is none."""
        tail = self.load("reply_tail")
        there = self.load("reply_head") - tail & 0xffffffff
        take = lambda n: bytes(self.memory[self.at + self.REPLIES + place % self.RING]
                               for place in range(tail, tail + n))
        if not there:
            return b""
        size = int.from_bytes(take(4), "little")
        if not 7 <= size <= min(there, 65536):
            raise Wrong(f"9P: a reply of {size} bytes, of which {there} are there")
        reply = take(size)
        self.store("reply_tail", tail + size)
        return reply

    def exchange(self, lines: list[str]) -> tuple[int, int]:
        """Send a new client's messages, and hold each reply against its request. How many were
        answered, and how many refused."""
        self.begin()
        sent = {0xf000: VERSION, 0xf001: ATTACH}
        self.send(message(VERSION, 0xf000, number(65536, 4) + text("9P2000.L"))
                  + message(ATTACH, 0xf001, bytes(16)))
        answered = refused = 0

        def take_replies() -> bool:
            nonlocal answered, refused
            while reply := self.receive():
                kind, tag = reply[4], int.from_bytes(reply[5:7], "little")
                asked = sent.pop(tag, None)
                if asked is None:
                    raise Wrong(f"9P: a reply to {tag:#x}, which nobody asks")
                if kind not in ((asked + 1) % 256, ERROR) or kind == ERROR and len(reply) != 11:
                    raise Wrong(f"9P: to a message of type {asked} a reply of type {kind} and "
                                f"{len(reply)} bytes")
                answered += kind != ERROR
                refused += kind == ERROR
            return LAST not in sent

        for tag, line in enumerate(lines):
            kind, body = line.split(" ")
            data = message(int(kind), tag, bytes.fromhex(body))
            self.until(lambda: take_replies() and self.RING - (
                self.load("request_head") - self.load("request_tail")) % (1 << 32) >= len(data),
                       "room for a message")
            sent[tag] = int(kind)
            self.send(data)
        sent[LAST] = FLUSH
        self.send(message(FLUSH, LAST, number(LAST, 2)))
        self.until(take_replies, "an answer to the last message")
        if silent := [kind for kind in sent.values() if kind != READ]:
            raise Wrong(f"9P: no answer to messages of types {silent}")
        self.begin()
        return answered - 3, refused

    def ask(self, kind: int, body: bytes) -> bytes:
        """One message. The body of its reply, without a header."""
        replies: list[bytes] = []
        self.send(message(kind, 0, body))
        self.until(lambda: bool(replies.append(self.receive()) or replies[-1]), "a reply")
        return replies[-1][7:]

    def remove_instances(self) -> None:
        """By their names as they are: no shell takes all of them."""
        self.begin()
        self.ask(VERSION, number(65536, 4) + text("9P2000.L"))
        self.ask(ATTACH, bytes(16))
        path = [text(x) for x in ("sys", "kernel", "tracing", "instances")]
        for fid in (1, 2):  # one of them is opened, and the other walks no more
            self.ask(110, bytes(4) + number(fid, 4) + number(len(path), 2) + b"".join(path))
        self.ask(12, number(1, 4) + bytes(4))
        names = self.ask(40, number(1, 4) + bytes(8) + number(60000, 4))[4:]
        while names:  # a qid, a place and a type stand before each
            size = 22 + 2 + int.from_bytes(names[22:24], "little")
            self.ask(76, number(2, 4) + names[22:size] + bytes(4))
            names = names[size:]
        self.begin()
