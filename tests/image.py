# SPDX-License-Identifier: MIT
"""The linked kernel as tests see it: a reading of its own, apart from tools/*.c,
so that a mistake there is not repeated here."""

import fnmatch
import functools
import re
import struct
import subprocess
from pathlib import Path

from lib import port

INFO = {arch: port.read(arch) for arch in port.architectures()}
CROSS = {arch: info["objdump"][0].removesuffix("objdump")
         for arch, info in INFO.items()}
# The front end that a port uses by default, and how its sites look as compiled.
FORMAT = {arch: next(iter(info["sites"])) for arch, info in INFO.items()}
SITE = {arch: INFO[arch]["sites"][name] for arch, name in FORMAT.items()}


@functools.cache
def name_among(arch: str, *kinds: str):
    """Is an instruction's name in one of these lists of the port's `code`?"""
    return re.compile("|".join(fnmatch.translate(pattern) for kind in kinds
                               for pattern in INFO[arch]["code"][kind])).match


class Function:
    """One function: its addresses and its instructions' text."""

    def __init__(self, arch: str, name: str, addr: int, size: int):
        self.arch, self.name, self.addr, self.size = arch, name, addr, size
        self.code: list[tuple[int, str, str]] = []

    def transfers(self) -> list[tuple[int, str, int | None]]:
        """(address, mnemonic, target or None if through a register)."""
        leads_on = name_among(self.arch, "calls", "jumps", "branches")
        stops = name_among(self.arch, "stops")
        found = []
        for addr, mnemonic, operands in self.code:
            target = re.search(r"(?:^|[ ,])([0-9a-f]+) <[^>]*>$", operands)
            if leads_on(mnemonic) and not stops(mnemonic):
                found.append((addr, mnemonic, int(target[1], 16)
                              if target and "*" not in operands else None))
        return found


class Image:
    """An ELF file of one architecture."""

    def __init__(self, arch: str, path: Path):
        self.arch, self.path = arch, Path(path)
        self.made_at = self.path.stat().st_mtime_ns
        self.data = self.path.read_bytes()
        self.bits = 64 if self.data[4] == 2 else 32
        self.order = ">" if self.data[5] == 2 else "<"  # for struct
        self.segments = self._segments()

    def unpack(self, form: str, data: bytes, at: int = 0) -> tuple:
        """struct.unpack_from() in the image's byte order."""
        return struct.unpack_from(self.order + form, data, at)

    def _segments(self) -> list[tuple[int, int, int]]:
        """(address, file offset, bytes in the file) of each loaded segment."""
        if self.bits == 64:
            phoff, = self.unpack("Q", self.data, 32)
            size, count = self.unpack("HH", self.data, 54)
            heads = [self.unpack("IIQQQQ", self.data, phoff + i * size)
                     for i in range(count)]
            return [(h[3], h[2], h[5]) for h in heads if h[0] == 1]
        phoff, = self.unpack("I", self.data, 28)
        size, count = self.unpack("HH", self.data, 42)
        heads = [self.unpack("IIIII", self.data, phoff + i * size)
                 for i in range(count)]
        return [(h[2], h[1], h[4]) for h in heads if h[0] == 1]

    def offset(self, addr: int) -> int:
        """Where in the file the byte at a linked address stands."""
        for start, at, size in self.segments:
            if start <= addr < start + size:
                return at + addr - start
        raise KeyError(f"{addr:#x} is not in {self.path}")

    def read(self, addr: int, size: int) -> bytes:
        """Bytes at a linked address."""
        at = self.offset(addr)
        return self.data[at:at + size]

    def u32(self, addr: int, count: int = 1) -> tuple[int, ...]:
        """Words at a linked address."""
        return self.unpack(f"{count}I", self.read(addr, 4 * count))

    def tool(self, name: str, *args: str) -> str:
        """Output of one of the architecture's binutils."""
        return subprocess.run([CROSS[self.arch] + name, *args, str(self.path)],
                              check=True, text=True, capture_output=True
                              ).stdout

    def section_size(self, name: str) -> int:
        """Bytes of a section, loaded or not."""
        line = re.search(rf"^ *\[ *\d+\] {re.escape(name)} +(.*)$",
                         self.tool("readelf", "-SW"), re.M)
        assert line, f"{self.path} has no section {name}"
        return int(line[1].split()[3], 16)

    @functools.cached_property
    def symbols(self) -> dict[str, int]:
        """Every symbol's value."""
        found = {}
        for line in self.tool("nm").splitlines():
            value, _, name = line.rpartition(" ")
            if value.strip()[:1] not in ("", "U"):
                # GNU nm extends a 32-bit MIPS address by its sign.
                found[name] = int(value.split()[0], 16) % (1 << self.bits)
        return found

    @functools.cached_property
    def symbol_rows(self) -> list[list[str]]:
        """readelf's table, without what an ABI has it say beside some symbols in brackets."""
        rows = [re.sub(r"\[.*?\]", "", line).split()
                for line in self.tool("readelf", "-sW").splitlines()]
        return [row for row in rows if len(row) == 8]

    @functools.cached_property
    def skipped(self) -> dict[str, int]:
        """Bytes at the beginning of a function that its ABI lets calls leave out."""
        return {name: int(length) for length, name in re.findall(
            r"\[<localentry>: (\d+)\] +\d+ (\S+)$", self.tool("readelf", "-sW"), re.M)}

    def size_of(self, name: str) -> int:
        """Bytes of a variable."""
        return {row[7]: int(row[2], 0) for row in self.symbol_rows if row[2].isdigit()}[name]

    @functools.cached_property
    def functions(self) -> list[Function]:
        """All functions in text with their code, ascending."""
        lo, hi = self.symbols["_text"], self.symbols["_etext"]
        found = {}
        for word in self.symbol_rows:
            if word[3] == "FUNC" and word[6] != "UND":
                addr = int(word[1], 16)
                if lo <= addr < hi:
                    found.setdefault(addr, Function(self.arch, word[7], addr,
                                                    int(word[2], 0)))
        functions = [found[addr] for addr in sorted(found)]
        self._read_code(functions)
        return functions

    def _read_code(self, functions: list[Function]) -> None:
        at = -1
        line_re = re.compile(r"\s*([0-9a-f]+):\t(?:notrack |bnd )?(\S+)\s*(.*?)(?:\s*//.*)?$")
        for line in self.tool("objdump", "-dzw", "--no-show-raw-insn"
                              ).splitlines():
            match = line_re.match(line)
            if not match:
                continue
            addr = int(match[1], 16)
            while at + 1 < len(functions) and \
                    addr >= functions[at + 1].addr:
                at += 1
            if at >= 0:
                functions[at].code.append((addr, match[2], match[3]))

    def function_at(self, addr: int) -> Function | None:
        """The function whose code holds an address."""
        lo, hi = 0, len(self.functions)
        while lo < hi:
            mid = (lo + hi) // 2
            if self.functions[mid].addr <= addr:
                lo = mid + 1
            else:
                hi = mid
        return self.functions[lo - 1] if lo else None

    @functools.cached_property
    def by_name(self) -> dict[str, list[Function]]:
        """Functions of a name. Static ones may share it."""
        found: dict[str, list[Function]] = {}
        for f in self.functions:
            found.setdefault(f.name, []).append(f)
        return found

    def _table(self, count: str, name: str) -> list[int]:
        """The addresses that a table of the image's own names."""
        n, = self.u32(self.symbols[count])
        return [self.symbols["_text"] + w for w in self.u32(self.symbols[name], n)]

    @functools.cached_property
    def sites(self) -> list[int]:
        """Addresses of the sites that can be switched."""
        return self._table("site_count", "site_table")

    @functools.cached_property
    def kept(self) -> list[int]:
        """And of those that stay off, because they run while text is patched."""
        return self._table("kept_off_count", "kept_off_table")
