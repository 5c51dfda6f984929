# SPDX-License-Identifier: MIT
"""The host's tools, on ELF files that are damaged: an end in words, never by a signal."""

import random
import re
import struct
import subprocess

import pytest
from conftest import ANY, ARCHES, ROOT, built, make
from lib import port

HOST = ROOT / "build" / "host"
DAMAGES = 60


def spots(data: bytes) -> list[int]:
    """Offsets of the ELF header, of the section headers, and of the first names' offsets in the
    symbol table, of a file for a machine of 32 or 64 bits."""
    order = ">" if data[5] == 2 else "<"
    wide = data[4] == 2
    at, = struct.unpack_from(order + ("Q" if wide else "I"), data, 40 if wide else 32)
    size, count = struct.unpack_from(f"{order}HH", data, 58 if wide else 46)
    found = [*range(64 if wide else 52), *range(at, at + size * count)]
    for i in range(count):
        kind, = struct.unpack_from(f"{order}I", data, at + i * size + 4)
        if kind == 2:  # SHT_SYMTAB
            start, = struct.unpack_from(order + ("Q" if wide else "I"), data,
                                        at + i * size + (24 if wide else 16))
            found += range(start, start + 24 * 16)
    return found


def commands(arch: str, elf, tmp_path) -> list[list]:
    """The tools that read an ELF file."""
    empty = tmp_path / "empty"
    empty.touch()
    return [[HOST / "extract", "--elf", elf, "--memory", empty, "-o", "-"],
            [HOST / "mkrecord", "--arch", arch, "--sites", "FORMAT", "-o", tmp_path / "out", elf]]


@pytest.mark.parametrize("arch", [ARCHES[0], ARCHES[-1]])
def test_damaged(arch, tmp_path):
    """Each tool ends by itself, with a line of its own."""
    image = built(arch)
    make("build/host/extract", "build/host/mkrecord")
    objects = next((ROOT / "build" / arch).rglob("string.c.o"))
    site = next(iter(port.read(arch)["sites"]))
    chance = random.Random(35)
    for source, which in ((image.path, 0), (objects, 1)):
        data = source.read_bytes()
        where = spots(data)
        bad = tmp_path / "bad.elf"
        for _ in range(DAMAGES):
            spoilt = bytearray(data)
            for _ in range(chance.randint(1, 4)):
                spoilt[chance.choice(where)] = chance.choice((0, 1, 0x7f, 0xff))
            bad.write_bytes(spoilt)
            command = [str(x).replace("FORMAT", site)
                       for x in commands(arch, bad, tmp_path)[which]]
            done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=60)
            assert 0 <= done.returncode <= 2, (done, chance.getstate()[1][:2])
            assert done.returncode == 0 or re.match(r"(extract|mkrecord): .+", done.stderr), done


@pytest.mark.parametrize("tool", ["extract", "patchpath"])
def test_bad_string(tool, tmp_path):
    """A symbol whose name lies outside of its section: the line names file and section."""
    image = built(ANY)
    make(f"build/host/{tool}")
    data = bytearray(image.path.read_bytes())
    table = spots(bytes(data))[-24 * 16]
    data[table + 16:table + 20] = b"\xf0" * 4  # a 32-bit symbol's name, the second's
    bad = tmp_path / "bad.elf"
    bad.write_bytes(data)
    site = next(iter(port.read(ANY)["sites"]))
    more = ["--elf", bad, "--memory", bad, "-o", "-"] if tool == "extract" else \
        ["--arch", ANY, "--sites", site, "--objdump", "true", bad]
    done = subprocess.run([HOST / tool, *more], cwd=ROOT, text=True, capture_output=True)
    assert done.returncode == 1
    assert re.fullmatch(rf"{tool}: {bad}: section \d+: it has no string at 0xf0f0f0f0\n",
                        done.stderr), done
