# SPDX-License-Identifier: MIT
"""The lines of the kernel's bench command."""

import re
import sys
from pathlib import Path
from typing import NoReturn

from lib import qemu

LINE = re.compile(r"bench: (\S+) (\d+(?:\.\d+)?) (\S+) (\d+(?:\.\d+)?|-)$")
STOP = re.compile(r"# stop.cost: (\d+) CPUs held for (\d+) ns$")


def fail(machine: qemu.Machine, verdict: qemu.Verdict, reason: str) -> NoReturn:
    """End, for there is nothing to measure: with tools/run's status."""
    print(f"tools/{Path(sys.argv[0]).stem}: {machine.arch}: {verdict.name}: {reason}",
          file=sys.stderr)
    sys.exit(verdict)


def tell(machine: qemu.Machine, line: str) -> None:
    """A figure as soon as the kernel has it, beside the table: a slow port shows how far it is."""
    if match := LINE.match(line):
        print(f"{machine.arch}: {' '.join(match.groups()[:3])}", file=sys.stderr, flush=True)


def kernel_figures(machine: qemu.Machine, elf: Path | None = None,
                   timeout: float = 180) -> list[dict]:
    """What the kernel counts: arch, name, value, unit, and limit, which is None where there is
    none."""
    command = machine.command(smp=1, elf=elf, icount=0, append='run="bench; poweroff"')
    result = qemu.boot(machine, command, timeout=timeout, on_line=lambda line: tell(machine, line))
    verdict, reason = qemu.judge(result, expect=[LINE.pattern])
    if verdict != qemu.Verdict.PASS:
        fail(machine, verdict, reason)
    wrong = [line for line in result.console.lines
             if line.startswith("bench: ") and not LINE.match(line)]
    if wrong:
        fail(machine, qemu.Verdict.FAIL, wrong[0])
    return [{"arch": machine.arch, "name": match[1], "value": float(match[2]), "unit": match[3],
             "limit": None if match[4] == "-" else float(match[4])}
            for line in result.console.lines if (match := LINE.match(line))]


def stop_figure(machine: qemu.Machine, cpus: int, timeout: float = 180) -> int:
    """Nanoseconds that a rendezvous of so many CPUs, which changes nothing, holds them."""
    command = machine.command(smp=cpus, icount=0, append='run="test stop.cost; poweroff"')
    result = qemu.boot(machine, command, timeout=timeout)
    verdict, reason = qemu.judge(result)
    if verdict != qemu.Verdict.PASS:
        fail(machine, verdict, reason)
    found, = filter(None, map(STOP.match, result.console.lines))
    if int(found[1]) != cpus:
        fail(machine, qemu.Verdict.FAIL, f"{found[1]} CPUs of {cpus} are there")
    return int(found[2])
