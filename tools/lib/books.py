# SPDX-License-Identifier: MIT
"""A guest's books: what must add up, whatever is done to it. For tools/soak."""

import re
from pathlib import Path

from lib.guest import Guest
from lib.livetext import LiveText
from lib.storm import TRACING, adds_up, cpu_stats, loops_of, trace_stats


class Wrong(Exception):
    """A book is not right. Its text is one line."""


class Books:
    """Opened while all is off, and the shell stands in TRACING."""

    def __init__(self, guest: Guest, elf: Path, smp: int):
        self.guest, self.smp = guest, smp
        self.text = LiveText(guest.qmp, elf)
        self.before = self.figures()

    def number(self, line: str, pattern: str) -> int:
        """The number in a line's output."""
        said = self.guest.run(line)
        if not (match := re.search(pattern, said)):
            raise Wrong(f"machine: {line!r} says {said.strip()!r}")
        return int(match[1])

    def sites_written(self) -> int:
        """The kernel's count of live instructions that it has switched."""
        return self.number("cat dyn_ftrace_total_info", r"sites written: (\d+)")

    def figures(self) -> tuple[int, ...]:
        """Tasks, free pages, objects. Which objects share a page is chance, so their pages are
        free."""
        return (self.number("uptime", r"(\d+) tasks"),
                self.number("cat /proc/meminfo", r"MemFree: +(\d+) kB") // 4
                + self.number("cat /proc/meminfo", r"SlabPages: +(\d+)"),
                self.number("cat /proc/meminfo", r"SlabObjects: +(\d+)"))

    def memory(self) -> None:
        """Live instructions in memory are those that the kernel lists."""
        names = {self.text.canonical(x.split()[0])
                 for x in self.guest.lines(f"cat {TRACING}/enabled_functions")}
        live, problem = self.text.live()
        if problem or live != names:
            raise Wrong("memory: " + (problem or f"{min(live ^ names)}: calls are on in {len(live)}"
                        f" functions, and enabled_functions names {len(names)}"))

    def counts(self) -> None:
        """Each ring has all that was written to it, or says where it went."""
        for instance in ["", *(f"instances/{x}" for x in
                               self.guest.run(f"ls {TRACING}/instances").split())]:
            for cpu in range(self.smp):
                if not adds_up(stats := cpu_stats(self.guest, cpu, instance)):
                    raise Wrong(f"counts: {instance}per_cpu/cpu{cpu}: {stats}")

    def calls(self, report: str, instance: str) -> None:
        """The instance has each call that stress's tasks have counted. None of them is lost."""
        if "none lost" not in report:
            raise Wrong(f"machine: {report.strip()}")
        written = trace_stats(self.guest, self.smp, instance)["written"]
        if written != (made := loops_of(report, "sleep")):
            raise Wrong(f"counts: {instance} has {written} calls of sleep_loop, and {made} were "
                        "made")

    def order(self) -> bool:
        """The order log keeps the rules. False: it was too small for what has happened."""
        said = self.guest.run(f"cat {TRACING}/patch_log_check").strip()
        if not said.startswith(("kept: ", "incomplete: ")):
            raise Wrong(f"order: {said}")
        return said.startswith("kept: ")

    def machine(self) -> None:
        """All is off: memory, tasks, pages and objects are as before."""
        if place := self.text.changed():
            raise Wrong(f"memory: all is off, and {place} is not as at boot")
        for name, before, now in zip(("tasks", "free pages", "objects"), self.before,
                                     self.figures()):
            if before != now:
                raise Wrong(f"machine: {now} {name}, and {before} before")
