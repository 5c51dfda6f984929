# SPDX-License-Identifier: MIT
"""Does a test hang? The CPU time that QEMU has had decides, not the clock."""

import os
import time
from pathlib import Path


class Watchdog:
    """Does a test hang, or the boot before the first test? A test of the contract
    ("arch...") takes less than a second, any other less than ten. A busy host makes
    them slow, but not hang: it is the CPU time that QEMU has had for it that counts, or
    that QEMU wanted none."""

    CONTRACT, OTHER = 4, 120  # seconds: of CPU time, or of standing still
    STILL = 0.05  # CPU time in a second of standing still: no CPU of the guest runs
    LOOK = 1  # second, at least, between two looks at that

    def __init__(self, pid: int, console, tests: bool, slow: bool):
        """tests: the first thing that the kernel does is to run tests. slow: under
        -icount, or with a plugin, everything takes longer."""
        self.pid, self.console = pid, console
        self.scale = 10 if slow else 1
        self.before = "the boot" if tests else None
        self.test = None
        self.begun = 0.0  # CPU time when the test began
        self.last = (0.0, 0.0)  # wall clock, CPU time
        self.still = 0.0  # seconds that it has stood still without a break

    def cpu_time(self) -> float:
        """Seconds that QEMU has run, all threads together."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return 0.0
        ticks = stat.rpartition(")")[2].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def waits_for_cpu(self) -> bool:
        """Is there a thread that would run if the host let it?"""
        try:
            states = {stat.read_text().rpartition(")")[2].split()[0]
                      for stat in Path(f"/proc/{self.pid}/task").glob("*/stat")}
        except OSError:  # it has just ended
            return False
        return bool({"R", "D"} & states)

    def hangs(self) -> bool:
        """Ask from time to time."""
        wall, cpu = time.monotonic(), self.cpu_time()
        runs = self.console.runs
        test = runs[-1].running if runs else self.before
        if test != self.test or not test:
            self.test, self.begun, self.last, self.still = test, cpu, (wall, cpu), 0.0
            return False
        limit = self.CONTRACT if test.startswith(("arch", "the boot")) else self.OTHER
        if (passed := wall - self.last[0]) >= self.LOOK:
            stands = cpu - self.last[1] < passed * self.STILL and not self.waits_for_cpu()
            self.still = self.still + passed if stands else 0.0
            self.last = (wall, cpu)
        return self.still >= limit or cpu - self.begun >= limit * self.scale
