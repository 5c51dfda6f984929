# SPDX-License-Identifier: MIT
"""The host stops a whole guest, as a container's pause does, for longer than any counter of the
machine takes to run over. The clock does not go back, and the entries stay in order."""

import os
import re
import signal
import time

from conftest import FACTS, stop_process

TRACING = "/sys/kernel/tracing"


def uptime(g):
    """Seconds since boot."""
    return float(re.search(r"\d+\.\d+", g.lines("uptime")[0])[0])


def test_clock(arch, guest):
    """A pause while calls are recorded: uptime and every CPU's entries go forward."""
    g = guest(arch, smp=2)
    g.run(f"cd {TRACING}; echo 'task_*' > set_ftrace_filter; echo function > current_tracer")
    # Where the counter is small: less than a turn of it, and more than half of one.
    pause = FACTS[arch].get("pause", 6.0)
    before = uptime(g)
    stop_process(g.pid)
    time.sleep(pause)
    os.kill(g.pid, signal.SIGCONT)
    after = uptime(g)
    assert after >= before + pause - 1, (before, after)
    g.run("echo 0 > tracing_on")
    for cpu in range(2):
        times = [float(m[1]) for line in g.lines(f"cat per_cpu/cpu{cpu}/trace")
                 if (m := re.search(r" (\d+\.\d+): ", line))]
        assert times == sorted(times)
    assert g.poweroff() == 0
