# SPDX-License-Identifier: MIT
"""The tracer's floors, as the table of tracer/README.md lists them: calls and includes go down, or
stay in a room."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TABLE = "tracer/README.md"
ROW = re.compile(r"^\| (\d) \| ((?:`\w+/` ?)+) \|([\d– ]*)\|", re.M)


def read_floors(text: str) -> dict[str, tuple[int, set[int]]]:
    """Of each room: its floor, and the floors that it may use."""
    rooms: dict[str, tuple[int, set[int]]] = {}
    for floor, names, below in ROW.findall(text):
        lo, _, hi = below.strip().partition("–")
        may = set(range(int(lo), int(hi or lo) + 1)) if lo else set()
        for name in re.findall(r"\w+", names):
            rooms[name] = int(floor), may
    return rooms


def unit_of(path: str) -> str:
    """room/file of a source file or an object of tracer/, without its ending."""
    return re.sub(r"(\.[chS])?(\.o)?$", "", path.partition("tracer/")[2])


def is_checked(path: str) -> bool:
    """Tests, and the files that they share, may use any floor."""
    return path.count("/") == 2 and not re.search(r"(_test|/testing)\.[ch]$", path)


def goes_up(rooms: dict[str, tuple[int, set[int]]], user: str, used: str) -> bool:
    """May the file `user` not use the file `used`?"""
    a, b = user.partition("/")[0], used.partition("/")[0]
    return a != b and rooms[b][0] not in rooms[a][1]


def includes(sources: list[str]) -> set[tuple[str, str]]:
    """Which file includes a header of which."""
    return {(unit_of(path), unit_of(name)) for path in sources
            for name in re.findall(r"^\s*#\s*include <(tracer/\w+/[^>]+)>",
                                   (ROOT / path).read_text(), re.M)}


def symbols_of(objects: list[Path]) -> tuple[dict[str, str], set[tuple[str, str]]]:
    """Which file defines each global symbol, and which file names which."""
    text = subprocess.run(["nm", "-A", "-g", *map(str, objects)], check=False, text=True,
                          capture_output=True).stdout
    where, names = {}, set()
    for path, kind, name in re.findall(r"^(.*?):[0-9a-f ]*([A-Za-z]) (\S+)$", text, re.M):
        unit = unit_of(path[path.rindex("tracer/"):])
        if kind in "Uw":
            names.add((unit, name))
        else:
            where[name] = unit
    return where, names


def kernel_events() -> set[str]:
    """Of the kernel's events: their calls and keys, which the kernel declares and every room may
    raise, as the kernel does. No prototype by hand adds to them."""
    text = (ROOT / "kernel/event/list.h").read_text()
    names = re.findall(r"^EVENT\(\s*\w+, (\w+),", text, re.M)
    return {f"{prefix}event_{name}" for name in names for prefix in ("", "key_")}


def calls(objects: list[Path]) -> set[tuple[str, str]]:
    """Which file calls a function of which, or uses its data, by the objects' symbols. So a
    prototype that is written by hand hides nothing."""
    where, names = symbols_of(objects)
    kernels = kernel_events()
    return {(unit, where[name]) for unit, name in names if name in where and name not in kernels}


def objects_of(sources: list[str], build: Path) -> list[Path]:
    """The objects in a build folder that are as new as their sources."""
    pairs = [(ROOT / path, build / (path + ".o")) for path in sources if path.endswith(".c")]
    return [o for path, o in pairs
            if o.exists() and o.stat().st_mtime >= path.stat().st_mtime]


def unknown_needs(sources: list[Path]) -> list[str]:
    """Clients that tests need (KNEED_CLIENT) and that nothing registers."""
    text = "".join(path.read_text() for path in sources)
    return sorted(set(re.findall(r'KNEED_CLIENT\(\w+, "(\w+)"\)', text)) -
                  set(re.findall(r"TRACE_CLIENT\((\w+),", text)))


def check_floors() -> list[str]:
    """A line for each arrow that goes up, and for each need of a test that nothing fulfils."""
    sources = [name for name in subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "tracer"], cwd=ROOT, check=True,
        text=True, capture_output=True).stdout.split()
        if re.search(r"\.[ch]$", name) and (ROOT / name).exists() and is_checked(name)]
    rooms = read_floors((ROOT / TABLE).read_text())
    unknown = {unit_of(name).partition("/")[0] for name in sources} - rooms.keys()
    if unknown:
        return [f"{TABLE}: the table of floors has no room {name}/" for name in sorted(unknown)]
    used = includes(sources)
    for build in sorted(p.parent for p in ROOT.glob("arch/*/port.mk")):
        objects = objects_of(sources, ROOT / "build" / build.name)
        if objects:
            used |= calls(objects)
    needs = unknown_needs([*ROOT.glob("tracer/*/*.c"), *ROOT.glob("arch/*/*.c")])
    return [f"KNEED_CLIENT(t, \"{name}\"): no TRACE_CLIENT has that name" for name in needs] + \
        sorted(f"tracer/{user} uses tracer/{other}, which is no lower floor ({TABLE})"
               for user, other in used if goes_up(rooms, user, other))
