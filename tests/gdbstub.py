# SPDX-License-Identifier: MIT
"""QEMU's gdb server, for tests that step a guest instruction by instruction."""

import re
import socket
import tempfile

from lib import qemu
from lib.stopped import Stopped


PACKET = re.compile(rb"[^$]*\$([^#]*)#..", re.S)
PART = 1024  # bytes of memory that one packet asks for


class Ended(Exception):
    """The guest has powered off."""


class Stub:
    """A stopped guest, under the remote serial protocol of GDB."""

    def __init__(self, arch: str, **options):
        self.log = tempfile.NamedTemporaryFile("r", errors="replace")
        self.guest = Stopped(qemu.Machine(arch).command(**options), self.log.name)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(self.guest.socket)
        self.socket.settimeout(20)
        self.buffer = b""
        self.call("qSupported:hwbreak+")
        # The guest takes interrupts, and its timers go on, while it is stepped.
        self.interrupts(False)

    def close(self) -> None:
        """End the guest."""
        self.socket.close()
        self.guest.close()
        self.log.close()

    def console(self) -> str:
        """The guest's output."""
        self.log.seek(0)
        return self.log.read()

    def _receive(self) -> None:
        try:
            more = self.socket.recv(65536)
        except ConnectionError:
            more = b""
        if not more:
            raise Ended
        self.buffer += more

    def _packet(self) -> str:
        while not (match := PACKET.match(self.buffer)):
            self._receive()
        self.buffer = self.buffer[match.end():]
        return match[1].decode()

    def answers(self, *requests: str) -> list[str]:
        """Send packets, of which the last alone lets the guest run. Returns their answers. What is
        asked for together costs the host one switch to QEMU and back."""
        text = "".join(f"${r}#{sum(r.encode()) % 256:02x}" for r in requests)
        try:
            # The + is for the last answer.
            self.socket.sendall(("+" + text).encode())
        except ConnectionError:
            raise Ended from None
        return [self._packet() for _ in requests]

    def call(self, text: str) -> str:
        """Send a packet, and return its answer."""
        answer, = self.answers(text)
        return answer

    def interrupts(self, on: bool) -> None:
        """May steps take interrupts? Time goes on meanwhile: a tick of some
        thousand instructions is over after a hundred steps."""
        self.call(f"Qqemu.sstep={1 if on else 3}")

    def step(self) -> None:
        """Execute one instruction, or take one interrupt."""
        if not self.call("s").startswith("T"):
            raise Ended

    def run_to(self, addr: int) -> None:
        """Go on until the instruction at addr is next."""
        assert self.call(f"Z0,{addr:x},1") == "OK"
        if not self.call("c").startswith("T"):
            raise Ended
        self.call(f"z0,{addr:x},1")

    def look(self, *places: tuple[int, int]) -> tuple[bytes, ...]:
        """All registers, in the server's order, and guest memory at these places."""
        parts = [parts_of(*place) for place in places]
        registers, *answers = self.answers("g", *(p for place in parts for p in place))
        found = [bytes.fromhex(registers.replace("x", "0"))]
        for place in parts:
            found.append(memory_of(place, answers[:len(place)]))
            del answers[:len(place)]
        return tuple(found)

    def registers(self) -> bytes:
        """All registers, in the server's order."""
        return self.look()[0]

    def memory(self, addr: int, size: int) -> bytes:
        """Guest memory at a virtual address."""
        parts = parts_of(addr, size)
        return memory_of(parts, self.answers(*parts))


def parts_of(addr: int, size: int) -> list[str]:
    """Packets that ask for memory."""
    return [f"m{at:x},{min(PART, addr + size - at):x}"
            for at in range(addr, addr + size, PART)]


def memory_of(parts: list[str], answers: list[str]) -> bytes:
    """The answers to these packets."""
    for part, answer in zip(parts, answers, strict=True):
        assert not answer.startswith("E"), f"no memory at {part}"
    return bytes.fromhex("".join(answers))
