# SPDX-License-Identifier: MIT
"""QEMU's machine protocol (QMP), as much of it as programs and tests here need."""

import json
import socket
import time
from pathlib import Path


def socket_args(path: Path | str) -> list[str]:
    """Arguments for a QEMU that answers at this socket."""
    return ["-qmp", f"unix:{path},server=on,wait=off"]


class Qmp:
    """A connection to QEMU, which may begin before QEMU does."""

    WAIT = 20  # seconds that QEMU may take to answer

    def __init__(self, connection: socket.socket):
        self.socket = connection
        self.rest = b""  # of a line
        self.said: list[dict] = []  # all that QEMU has said
        self.asked = 0
        self.socket.settimeout(self.WAIT)
        self.socket.sendall(b'{"execute": "qmp_capabilities"}\n')

    @classmethod
    def connect(cls, path: Path | str) -> "Qmp":
        """Connect to the socket of a QEMU that has just been started."""
        connection = socket.socket(socket.AF_UNIX)
        deadline = time.monotonic() + cls.WAIT
        while True:
            try:
                connection.connect(str(path))
                return cls(connection)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def take(self) -> bool:
        """Read once. False: QEMU has closed the connection. TimeoutError, BlockingIOError: it has
        said nothing."""
        try:
            data = self.socket.recv(65536)
        except ConnectionError:  # QEMU was killed
            data = b""
        *lines, self.rest = (self.rest + data).split(b"\n")
        self.said += map(json.loads, lines)
        return bool(data)

    def drain(self) -> list[dict]:
        """All that QEMU has said until now. Does not wait."""
        self.socket.setblocking(False)
        try:
            while self.take():
                pass
        except BlockingIOError:
            pass
        self.socket.settimeout(self.WAIT)
        return self.said

    def command(self, name: str, **arguments):
        """Run a command, and return its value. RuntimeError: QEMU refuses it. TimeoutError:
        QEMU does not answer. ConnectionError: QEMU has ended."""
        self.asked += 1
        ask = {"execute": name, "arguments": arguments, "id": self.asked}
        self.socket.sendall(json.dumps(ask).encode() + b"\n")
        begin = len(self.said)
        while not (answer := [x for x in self.said[begin:] if x.get("id") == self.asked]):
            try:
                if not self.take():
                    raise ConnectionError(f"{name}: QEMU has ended")
            except TimeoutError:
                raise TimeoutError(f"{name}: QEMU has not answered for {self.WAIT} s; is it "
                                   "stopped?") from None
        if "error" in answer[0]:
            raise RuntimeError(f"{name}: {answer[0]['error']['desc']}")
        return answer[0]["return"]

    def monitor(self, line: str) -> str:
        """Run a command of the monitor for people, and return its output."""
        return self.command("human-monitor-command", **{"command-line": line})
