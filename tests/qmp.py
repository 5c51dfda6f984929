# SPDX-License-Identifier: MIT
"""QEMU's machine protocol, as much of it as tests need."""

import json
import socket
import time
from pathlib import Path


class Qmp:
    """A connection to a guest started with Qmp.args(path)."""

    def __init__(self, path: Path):
        self.socket = socket.socket(socket.AF_UNIX)
        deadline = time.monotonic() + 10
        while True:
            try:
                self.socket.connect(str(path))
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        self.socket.settimeout(60)  # QEMU may be stopped: then a read raises TimeoutError
        self.stream = self.socket.makefile("rw")
        self.stream.readline()
        self.command("qmp_capabilities")

    @staticmethod
    def args(path: Path) -> list[str]:
        """Arguments for QEMU."""
        return ["-qmp", f"unix:{path},server=on,wait=off"]

    def command(self, name: str, **arguments):
        """Run a command; what it returned."""
        self.stream.write(json.dumps({"execute": name,
                                      "arguments": arguments}) + "\n")
        self.stream.flush()
        while True:
            answer = json.loads(self.stream.readline())
            if "error" in answer:
                raise RuntimeError(f"{name}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def read(self, addr: int, size: int, folder: Path) -> bytes:
        """Guest memory at a virtual address of CPU 0."""
        out = folder / "memory"
        self.command("memsave", val=addr - (addr >> 63 << 64), size=size,
                     filename=str(out))
        return out.read_bytes()
