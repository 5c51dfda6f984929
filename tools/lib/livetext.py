# SPDX-License-Identifier: MIT
"""The kernel's text in a guest's memory, as QEMU's monitor reads it, held against the site tables
of the ELF file: which live instructions are on."""

import bisect
import re
import struct
import subprocess
import tempfile
from pathlib import Path

from lib.qmp import Qmp

SITE_MAX = 16  # bytes of a site, at most


class LiveText:
    """Made while all is off. Each other byte must stay as it is then."""

    def __init__(self, qmp: Qmp, elf: Path):
        self.qmp = qmp
        self.order = ">" if elf.read_bytes()[5] == 2 else "<"
        heads = subprocess.run(["readelf", "-lW", elf], text=True, capture_output=True,
                               check=True).stdout
        self.segments = [tuple(int(x, 16) for x in found) for found in re.findall(
            r"LOAD +0x(\w+) 0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", heads)]
        symbols = [(name, int(at, 16), kind) for at, kind, name in re.findall(
            r"^ *\d+: (\w+) +\w+ (\w+) +\w+ +\w+ +(?:\[.*\] +)?\w+ (\S+)$", subprocess.run(
                ["readelf", "-sW", elf], text=True, capture_output=True, check=True).stdout,
            re.M)]
        self.symbols = {name: at for name, at, _ in symbols}
        self.moved = 0
        self.moved = self.loaded_at(self.symbols["_rodata"], elf.read_bytes())
        start, end = self.symbols["_text"], self.symbols["_etext"]
        self.functions = sorted((at - start, name) for name, at, kind in symbols
                                if kind == "FUNC" and start <= at < end)
        self.starts = {name: at for at, name in self.functions}
        # Not calls: jump labels, and the prefixes that only more than one CPU needs.
        self.others = {*self.table("jump"), *self.table("lock")}
        self.sites = sorted({*self.table("site"), *self.others})
        self.off = self.read(start, end - start)
        self.on: dict[int, int] = {}  # bytes, as they were first seen on

    def loaded_at(self, constants: int, elf: bytes) -> int:
        """How far from its physical addresses QEMU has loaded the file. CPU 0 is asked only if the
        constants are not there: it may run firmware, which has other mappings."""
        at = next(constants - to + at for at, to, _, length in self.segments
                  if to <= constants < to + length)
        if self.read(constants, SITE_MAX) == elf[at:at + SITE_MAX]:
            return 0
        said = re.match(r"gpa: 0x(\w+)", self.qmp.monitor(f"gva2gpa {constants:#x}"))
        return int(said[1], 16) - self.physical(constants) if said else 0

    def physical(self, addr: int) -> int:
        """Where an address of the ELF file is in memory."""
        return next(addr - at + to for _, at, to, length in self.segments
                    if at <= addr < at + length) + self.moved

    def read(self, addr: int, size: int) -> bytes:
        """Memory at an address of the ELF file."""
        with tempfile.NamedTemporaryFile() as file:
            self.qmp.command("pmemsave", val=self.physical(addr), size=size, filename=file.name)
            return file.read()

    def table(self, name: str) -> list[int]:
        """Offsets from _text, which tools/mksites has found."""
        count, = struct.unpack(f"{self.order}I", self.read(self.symbols[f"{name}_count"], 4))
        return list(struct.unpack(f"{self.order}{count}I",
                                  self.read(self.symbols[f"{name}_table"], 4 * count)))

    def name(self, offset: int) -> str:
        """A place in text, in words."""
        at, name = self.functions[bisect.bisect(self.functions, (offset, "~")) - 1]
        return f"{name}+{offset - at:#x}"

    def canonical(self, name: str) -> str:
        """Of several names of one function, one."""
        return self.name(self.starts[name]).partition("+")[0]

    def live(self) -> tuple[set[str], str]:
        """The functions whose calls are on, and the first place where a byte is neither on nor
        off, or an empty text."""
        calls, now = set(), self.read(self.symbols["_text"], len(self.off))
        for i, (byte, off) in enumerate(zip(now, self.off)):
            if byte == off:
                continue
            site = self.sites[bisect.bisect(self.sites, i) - 1]
            if not 0 <= i - site < SITE_MAX or self.on.setdefault(i, byte) != byte:
                return calls, f"{self.name(i)} has {byte:02x}, which is neither on nor off"
            if site not in self.others:
                calls.add(self.name(site).partition("+")[0])
        return calls, ""

    def changed(self) -> str:
        """The first place that is not as it was when all was off, or an empty text."""
        now = self.read(self.symbols["_text"], len(self.off))
        return next((self.name(i) for i in range(len(now)) if now[i] != self.off[i]), "")
