# SPDX-License-Identifier: MIT
"""The host's tools, on ELF files that are damaged: an end in words, never by a signal."""

import random
import re
import struct
import subprocess

import pytest
from conftest import ANY, ARCHES, ROOT, built, make
from lib import port
from lib.qmp import socket_args

HOST = ROOT / "build" / "host"
# Damaged files for each tool. Two of them let objdump read the whole file first.
DAMAGES = {"extract": 60, "mkrecord": 60, "mksites": 12, "patchpath": 12}
DEBUG = 2048  # bytes of each section of debug information that are damaged


def spots(data: bytes) -> list[int]:
    """Offsets of the ELF header, of the section headers, of the first names' offsets in the
    symbol table, and of the first debug information, of a file for a machine of 32 or 64 bits."""
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


def debug_spots(data: bytes) -> list[int]:
    """Offsets of the first debug information in each of its sections."""
    order = ">" if data[5] == 2 else "<"
    word, fields = ("Q", 64) if data[4] == 2 else ("I", 40)
    at, = struct.unpack_from(order + word, data, 40 if word == "Q" else 32)
    count, = struct.unpack_from(f"{order}H", data, 60 if word == "Q" else 48)
    found = []
    for i in range(count):
        _name, kind, flags, _addr, start, size = struct.unpack_from(
            f"{order}II4{word}", data, at + i * fields)
        if kind == 1 and not flags & 2:  # SHT_PROGBITS, and not SHF_ALLOC
            found += range(start, start + min(size, DEBUG))
    return found


def command(tool: str, arch: str, elf, tmp_path) -> tuple[list, str]:
    """The tools that read an ELF file, and the file that each of them reads in a build."""
    empty = tmp_path / "empty"
    empty.touch()
    info = port.read(arch)
    which = ["--arch", arch, "--sites", next(iter(info["sites"]))]
    kernel = [*which, "--objdump", info["objdump"][0]]
    return {
        "extract": (["--elf", elf, "--memory", empty, "-o", "-"], "nopl.elf"),
        "mkrecord": ([*which, "-o", tmp_path / "out", elf], "string.c.o"),
        "mksites": ([*kernel, "--record", "link", elf, "-o", tmp_path / "out"], "first.elf"),
        "patchpath": ([*kernel, elf], "nopl.elf")}[tool]


@pytest.mark.parametrize("tool", DAMAGES)
@pytest.mark.parametrize("arch", [ARCHES[0], ARCHES[-1]])
def test_damaged(arch, tool, tmp_path):
    """Each tool ends by itself, with a line of its own. Before it, only those of binutils."""
    built(arch)
    make(f"build/host/{tool}")
    bad = tmp_path / "bad.elf"
    args, name = command(tool, arch, bad, tmp_path)
    data = next((ROOT / "build" / arch).rglob(name)).read_bytes()
    places = [spots(data), debug_spots(data)]
    chance = random.Random(35)
    for _ in range(DAMAGES[tool]):
        spoilt = bytearray(data)
        where = chance.choice(places)
        for _ in range(chance.randint(1, 4)):
            spoilt[chance.choice(where)] = chance.choice((0, 1, 0x7f, 0xff))
        bad.write_bytes(spoilt)
        done = subprocess.run([HOST / tool, *args], cwd=ROOT, text=True, capture_output=True,
                              timeout=120, errors="replace")
        assert 0 <= done.returncode <= 2, (done, chance.getstate()[1][:2])
        lines = done.stderr.splitlines()
        assert done.returncode == 0 or re.match(rf"({tool}|patchpath): .+", lines[-1]), done
        # mksites looks at the patching path, too.
        other = [x for x in lines
                 if not re.match(rf"{tool}: |patchpath: |\S*(objdump|strip): ", x)]
        assert not other, other


@pytest.mark.parametrize("tool", ["extract", "mksites", "patchpath"])
def test_bad_string(tool, tmp_path):
    """A symbol whose name lies outside of its section: the line names file and section."""
    image = built(ANY)
    make(f"build/host/{tool}")
    bad = tmp_path / "bad.elf"
    args, name = command(tool, ANY, bad, tmp_path)
    data = bytearray((image.path.parent / name).read_bytes())
    table = spots(bytes(data))[-24 * 16]
    at = table + (24 if data[4] == 2 else 16)  # the second symbol's name
    data[at:at + 4] = b"\xf0" * 4
    bad.write_bytes(data)
    done = subprocess.run([HOST / tool, *args], cwd=ROOT, text=True, capture_output=True)
    assert done.returncode == 1
    assert re.fullmatch(rf"{tool}: {bad}: section \d+: it has no string at 0xf0f0f0f0\n",
                        done.stderr), done


def set_symbol(data: bytearray, name: str, field: str) -> None:
    """Let a symbol's value or size be the largest number that there is."""
    order, wide = (">" if data[5] == 2 else "<"), data[4] == 2
    word, at_of = ("Q", {"value": 8, "size": 16}) if wide else ("I", {"value": 4, "size": 8})
    at, = struct.unpack_from(order + word, data, 40 if wide else 32)
    count, = struct.unpack_from(f"{order}H", data, 60 if wide else 48)
    heads = [struct.unpack_from(f"{order}II4{word}II", data, at + i * (64 if wide else 40))
             for i in range(count)]
    symbols = next(head for head in heads if head[1] == 2)
    names = heads[symbols[6]][4]
    for entry in range(symbols[4], symbols[4] + symbols[5], 24 if wide else 16):
        start = names + struct.unpack_from(f"{order}I", data, entry)[0]
        if data[start:data.index(0, start)] == name.encode():
            place = entry + at_of[field]
            data[place:place + (8 if wide else 4)] = b"\xff" * (8 if wide else 4)
            return
    raise AssertionError(f"no symbol {name}")


BEYOND = r"function schedule of \d+ bytes goes beyond _etext"
OUTSIDE = "__start_patch_roots to __stop_patch_roots does not lie in the image"


@pytest.mark.parametrize("tool, symbol, field, says", [
    *((tool, "schedule", "size", BEYOND) for tool in ("extract", "mksites", "patchpath")),
    *((tool, "__stop_patch_roots", "value", OUTSIDE) for tool in ("mksites", "patchpath"))])
def test_a_symbol_that_leads_out(tool, symbol, field, says, tmp_path):
    """A function, or a list of functions, that goes on behind the image."""
    image = built(ANY)
    make(f"build/host/{tool}")
    bad = tmp_path / "bad.elf"
    args, name = command(tool, ANY, bad, tmp_path)
    data = bytearray((image.path.parent / name).read_bytes())
    set_symbol(data, symbol, field)
    bad.write_bytes(data)
    done = subprocess.run([HOST / tool, *args], cwd=ROOT, text=True, capture_output=True)
    assert done.returncode == 1
    assert re.fullmatch(rf"{tool}: {bad}: {says}\n", done.stderr), done


@pytest.mark.parametrize("symbol", ["__stop_events", "__start_patch_strategies"])
def test_tables_without_an_end(symbol, guest, tmp_path):
    """extract walks tables from one symbol to another, which damage puts anywhere."""
    make("build/host/extract")
    qmp, bad = tmp_path / "qmp", tmp_path / "bad.elf"
    g = guest(ANY, extra=socket_args(qmp))
    data = bytearray(g.machine.elf.read_bytes())
    set_symbol(data, symbol, "value")
    bad.write_bytes(data)
    done = subprocess.run([HOST / "extract", "--elf", bad, "--qmp", qmp, "--format", "trace.dat",
                           "-o", tmp_path / "out"], text=True, capture_output=True, timeout=60)
    assert done.returncode == 1
    assert re.fullmatch(rf"extract: {bad}: __start_\w+ to __stop_\w+ is no table of \d+ bytes "
                        "an entry\n", done.stderr), done


def test_types_without_a_size(guest, tmp_path):
    """extract walks arrays in steps of a type's size: 0 would be no step."""
    make("build/host/extract")
    qmp, bad = tmp_path / "qmp", tmp_path / "bad.elf"
    g = guest(ANY, extra=socket_args(qmp))
    # In .debug_abbrev: a structure with children and a name, and its DW_AT_byte_size.
    data, count = re.subn(rb"(\x13\x01\x03[\x08\x0e\x1f])\x0b", lambda m: m[1] + b"\x0c",
                          g.machine.elf.read_bytes())
    assert count
    bad.write_bytes(data)
    done = subprocess.run([HOST / "extract", "--elf", bad, "--qmp", qmp, "--format", "text", "-o",
                           tmp_path / "out"], text=True, capture_output=True, timeout=60)
    assert done.returncode == 1
    assert re.fullmatch(rf"extract: {bad}: struct \w+ has no size\n", done.stderr), done
