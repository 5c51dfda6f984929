# SPDX-License-Identifier: MIT
"""Sections with interrupts off, or preemption off, of a guest under the plugin
tools/plugin/sections.c: where each began, the longest, and where its time went."""

import bisect
import json
import re
import struct
import subprocess
import tempfile
from pathlib import Path

from lib import qemu
from lib.variants import run_make

PLUGIN = "build/host/sections.so"
# The plugin's enum place.
FUNCTION, OFF, ON, SAVE, RESTORE, TRAP, RETURN, POP, BEGIN, END = range(10)
MEMORY = "256M"
LOW = 0xffffffff


class Kernel:
    """An image's functions, and the places where interrupts go off and on."""

    def __init__(self, machine: qemu.Machine, elf: Path):
        self.machine, self.elf = machine, elf
        self.info = machine.info["interrupts"]
        objdump = machine.info["objdump"][0]
        rows = re.findall(r"^([0-9a-f]+) (?:([0-9a-f]+) )?(\w) (\S+)$", self._run(
            objdump.removesuffix("objdump") + "nm", "-S"), re.M)
        self.symbols = {name: (int(at, 16), int(size or "0", 16)) for at, size, _, name in rows}
        # By the low half of the address, which is all that the plugin looks at.
        self.functions = sorted((int(at, 16) & LOW, name) for at, _, kind, name in rows
                                if kind in "tT")
        self.code = re.findall(r"^ *([0-9a-f]+):\t[0-9a-f ]+\t(\S+)[ \t]*(.*)$",
                               self._run(objdump, "-d"), re.M)

    def _run(self, *command: str) -> str:
        return subprocess.run([*command, str(self.elf)], text=True, capture_output=True,
                              check=True).stdout

    def name(self, low: int) -> str:
        """The function at an address, of which this is the low half."""
        at = bisect.bisect(self.functions, (low, "\x7f")) - 1
        return self.functions[at][1] if at >= 0 else f"{low:#x}"

    def _interrupts(self):
        """(address, kind) of each instruction that changes whether interrupts are on."""
        kinds = {key: kind for key, kind in (("off", OFF), ("on", ON), ("restore", RESTORE),
                                             ("return", RETURN), ("pop", POP))
                 if key in self.info}
        found = []
        for addr, name, operands in self.code:
            text = f"{name} {operands.partition('#' if name == 'popf' else ' <')[0]}".strip()
            text = re.sub(r"\s*(//|;).*", "", text)
            for key, kind in kinds.items():
                if re.fullmatch(self.info[key], text):
                    found.append((int(addr, 16), kind))
        restoring = {self.name(a & LOW) for a, kind in found if kind == RESTORE}
        return [(a, SAVE if kind == OFF and self.name(a & LOW) in restoring else kind)
                for a, kind in found]

    def places(self, bounds: tuple[str, str] | None) -> bytes:
        """The plugin's file. bounds: functions that begin and end what is counted."""
        symbol, first, apart, count = self.info["traps"]
        start = self.symbols[symbol][0] + first
        rest = self._interrupts() + [(start + i * apart, TRAP) for i in range(count)]
        rest += [(self.symbols[name][0], kind)
                 for name, kind in zip(bounds or (), (BEGIN, END))]
        rows = [(a, FUNCTION) for a, _ in self.functions]
        rows += sorted((a & LOW, kind) for a, kind in rest)
        return b"".join(struct.pack("<II", *row) for row in rows)

    def count(self) -> tuple[int, int]:
        """The address of the boot CPU's preempt_count, and bytes to the next CPU's."""
        head = (qemu.ROOT / "arch" / "cpu_head.h").read_text()
        words, more = re.search(r"CPU_HEAD_PREEMPT \((\d+) \* __SIZEOF_POINTER__ \+ (\d+)\)",
                                head).groups()
        pointer = 8 if self.elf.read_bytes()[4] == 2 else 4
        at, size = self.symbols["cpus"]
        cpus = int(re.search(r"^#define MAX_CPUS (\d+)",
                             (qemu.ROOT / "kernel/types.h").read_text(), re.M)[1])
        return at + int(words) * pointer + int(more), size // cpus


def arguments(kernel: Kernel, folder: Path, bounds: tuple[str, str] | None) -> list[str]:
    """QEMU's arguments: RAM that the plugin can read, and the plugin."""
    machine, ram, places = kernel.machine, folder / "ram", folder / "places"
    places.write_bytes(kernel.places(bounds))
    args = machine.info["args"]
    name = args[args.index("-machine" if "-machine" in args else "-M") + 1].split(",")[0]
    base = machine.info["fetch"].get("ram", {}).get(name, "0")
    count, size = kernel.count()
    big = kernel.elf.read_bytes()[5] == qemu.ELFDATA2MSB
    return ["-object", f"memory-backend-file,id=sections-ram,share=on,size={MEMORY},"
            f"mem-path={ram}", "-machine", "memory-backend=sections-ram",
            "-plugin", f"file={qemu.ROOT / PLUGIN},places={places},ram={ram},base={base},"
            f"count={count:#x},size={size},out={folder / 'sections'}" + ",big=1" * big]


def boot(kernel: Kernel, append: str, *, smp: int = 1, timeout: float = 600,
         bounds: tuple[str, str] | None = None) -> tuple[qemu.Boot, list[dict]]:
    """Run a guest under the plugin, which is made first. Its result, and the sections."""
    if run_make("-s", PLUGIN).returncode:
        raise qemu.UsageError(f"make {PLUGIN} fails")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = Path(name)
        result = qemu.boot(kernel.machine, kernel.machine.command(
            smp=smp, elf=kernel.elf, append=append, icount=0, memory=MEMORY,
            extra=arguments(kernel, folder, bounds)), timeout)
        return result, found(kernel, folder)


def found(kernel: Kernel, folder: Path) -> list[dict]:
    """The plugin's rows, the longest first, with names in place of addresses."""
    path = folder / "sections"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for row in rows:
        row |= {key: kernel.name(row[key]) for key in ("began", "caller", "ended", "hot")}
    return sorted(rows, key=lambda row: -row["longest"])


# The kernel's `sections` calls these.
BOUNDS = ("sections_begin", "sections_end")
# Loads that leave current_tracer alone, and what a latency tracer sees of them.
AGAINST = "waking"
LATENCY = re.compile(r"sections: (irqsoff|preemptoff) (\d+) ns (\w+)\S* (\w+)\S*$")
# Nanoseconds. A section may take 100 us, and all take less. The two counts of one may differ by the
# tracer's own instructions and a tick of the clock.
LIMITS, TOLERANCE = {"irqs": 60000, "preempt": 70000}, 2000


def longest(rows: list[dict], kind: str, run: int) -> dict:
    """The longest section of a kind."""
    return next((r for r in rows if (r["kind"], r["run"]) == (kind, run)),
                {"longest": 0, "began": "-", "caller": "-", "ended": "-", "hot": "-"})


def figures(machine: qemu.Machine, elf: Path | None = None, loads: str = "[!l]*",
            timeout: float = 600) -> list[dict]:
    """Figures of `bench`: the longest sections of the kernel's `sections`, and how far its own
    tracers' figures are from these. Strategy `stop`, whose rendezvous is as long as the batch,
    is aside."""
    kernel = Kernel(machine, Path(elf or machine.elf))
    result, rows = boot(kernel, f'patch_strategy=breakpoint run="sections {loads}; sections '
                        f'{AGAINST} irqsoff; sections {AGAINST} preemptoff; poweroff"',
                        bounds=BOUNDS, timeout=timeout)
    own = {match[1]: int(match[2]) for line in result.console.lines
           if (match := LATENCY.match(line))}
    if set(own) != {"irqsoff", "preemptoff"}:
        raise qemu.UsageError(f"{machine.arch}: sections: the guest did not come to its end; last "
                              f"line: {result.console.lines[-1:]}")
    made = []
    for run, kind, tracer in ((2, "irqs", "irqsoff"), (3, "preempt", "preemptoff")):
        most = longest(rows, kind, 1)
        apart = abs(longest(rows, kind, run)["longest"] - own[tracer])
        where = f"{most['began']} <- {most['caller']} .. {most['ended']}, most in {most['hot']}"
        made += [{"name": f"longest_{kind}_off", "value": float(most["longest"]), "unit": "ns",
                  "limit": LIMITS[kind], "where": where},
                 {"name": f"{tracer}_from_outside", "value": float(apart), "unit": "ns",
                  "limit": TOLERANCE}]
    return [{"arch": machine.arch} | figure for figure in made]
