# SPDX-License-Identifier: MIT
"""Faults of the kernel's list (`cat /proc/faults`) in a running guest: each is survived."""

import pexpect
import pytest

LINES = 8


@pytest.mark.parametrize("nth", [1, 2, 5])
def test_console_lost(arch, nth, guest):
    """An interrupt of the console is lost. The next line that is typed is answered, and those
    behind it."""
    g = guest(arch, smp=2, append=f"fault=console_lost@{nth}")
    late = 0
    for _ in range(LINES):
        g.send("uptime\r")
        # Some devices tell of bytes when the next one comes, and not before.
        late += g.expect([r"up \d", pexpect.TIMEOUT], timeout=3)
    assert late <= 1, f"{late} of {LINES} lines had no answer"
    g.send("echo all of it\r")
    g.expect("\nall of it")
    g.expect_prompt()
    counts = [x for x in g.lines("cat /proc/interrupts") if x.endswith("console")]
    assert sum(map(int, counts[0].split()[1:-1])) >= nth, counts
    assert g.poweroff() == 0
