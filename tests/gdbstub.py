"""QEMU's gdb server, for tests that step a guest instruction by instruction."""

import socket
import subprocess
import tempfile
import time
from pathlib import Path

from lib import qemu


class Ended(Exception):
    """The guest has powered off."""


class Stub:
    """A stopped guest, under the remote serial protocol of GDB."""

    def __init__(self, arch: str, **options):
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "gdb"
        machine = qemu.Machine(arch)
        command = machine.command(extra=[
            "-S", "-chardev", f"socket,id=gdb,path={path},server=on,wait=off",
            "-gdb", "chardev:gdb"], **options)
        command = qemu.replace_option(
            command, "-serial", f"file:{self.folder.name}/console")
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            preexec_fn=qemu.end_with_parent)
        self.socket = socket.socket(socket.AF_UNIX)
        while True:
            try:
                self.socket.connect(str(path))
                break
            except OSError:
                assert self.process.poll() is None, "QEMU ended"
                time.sleep(0.02)
        self.socket.settimeout(20)
        self.buffer = b""
        self.call("qSupported:hwbreak+")
        # The guest takes interrupts, and its timers go on, while it is stepped.
        self.interrupts(False)

    def close(self) -> None:
        """End the guest."""
        self.socket.close()
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def console(self) -> str:
        """What the guest has printed."""
        return Path(self.folder.name, "console").read_text("utf-8", "replace")

    def _receive(self) -> None:
        try:
            more = self.socket.recv(65536)
        except ConnectionError:
            more = b""
        if not more:
            raise Ended
        self.buffer += more

    def _byte(self) -> bytes:
        if not self.buffer:
            self._receive()
        byte, self.buffer = self.buffer[:1], self.buffer[1:]
        return byte

    def _packet(self) -> str:
        while self._byte() != b"$":
            pass
        while b"#" not in self.buffer:
            self._receive()
        data, _, self.buffer = self.buffer.partition(b"#")
        while len(self.buffer) < 2:
            self._receive()
        self.buffer = self.buffer[2:]
        self._send("+")
        return data.decode()

    def _send(self, text: str) -> None:
        try:
            self.socket.sendall(text.encode())
        except ConnectionError:
            raise Ended from None

    def call(self, text: str) -> str:
        """Send a packet; its answer."""
        self._send(f"${text}#{sum(text.encode()) % 256:02x}")
        return self._packet()

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

    def registers(self) -> bytes:
        """All registers, in the server's order."""
        return bytes.fromhex(self.call("g").replace("x", "0"))

    def memory(self, addr: int, size: int) -> bytes:
        """Guest memory at a virtual address."""
        data = b""
        while len(data) < size:
            part = min(size - len(data), 1024)
            answer = self.call(f"m{addr + len(data):x},{part:x}")
            assert not answer.startswith("E"), f"no memory at {addr:#x}"
            data += bytes.fromhex(answer)
        return data
