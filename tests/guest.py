# SPDX-License-Identifier: MIT
"""Guests' output, read line by line, and the guest itself, of tools/lib."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from lib.grammar import (  # noqa: E402, F401
    TRACE_LINE, function_events, graph_events, graph_nesting)
from lib.guest import PROMPT, Guest  # noqa: E402, F401


def trace_stats(g, cpus: int, instance: str = "") -> dict[str, int]:
    """per_cpu/cpuN/stats, summed over the CPUs, of the top level, or of instances/NAME/."""
    total: dict[str, int] = {}
    for cpu in range(cpus):
        for line in g.lines(
                f"cat /sys/kernel/tracing/{instance}per_cpu/cpu{cpu}/stats"):
            name, _, value = line.partition(":")
            number = re.match(r"\s*(\d+)$", value)
            if number:
                total[name] = total.get(name, 0) + int(number[1])
    return total
