# SPDX-License-Identifier: MIT
"""What storms share, of tests and of tools/soak: a guest's counts, random lines, and NMIs from
outside."""

import random
import re
import threading

from lib import port
from lib.qmp import Qmp

TRACING = "/sys/kernel/tracing"
CPUS = "/sys/devices/system/cpu"
STRATEGIES = ["stop", "breakpoint", "word", "bypass"]
TRACERS = ["function", "function_graph", "irqsoff", "preemptoff", "wakeup", "nop"]
GLOBS = ["sched_*", "task_*", "*lock*", "ktest_*", "stress_*", "?i*", "*", "mm_*", "ctl_*"]
EVENTS = ["sched/sched_switch", "sched/sched_wakeup", "irq", "timer", "sched", "ipi"]
# Each event that was written is in one of these.
PLACES = ("entries", "overrun", "dropped events", "read events")


def loops_of(report: str, kind: str) -> int:
    """The own counts of the stress tasks of that kind."""
    line = re.search(rf"^{kind} .*?: (.*) loops", report, re.M)
    return sum(int(n) for n in line[1].split())


def off_for(arch: str, strategy: str) -> str:
    """The parameter that makes `word` possible. QEMU's x86-64 fetches
    bytes one by one: there off and on must differ in one byte only."""
    word = port.read(arch)["tests"].get("word", {})
    return word.get("append", "") if strategy == "word" else ""


def cpu_stats(g, cpu: int, instance: str = "") -> dict[str, int]:
    """per_cpu/cpuN/stats of the top level, or of instances/NAME/."""
    found = (re.match(r"(.*?):\s*(\d+)$", line)
             for line in g.lines(f"cat {TRACING}/{instance}per_cpu/cpu{cpu}/stats"))
    return {match[1]: int(match[2]) for match in found if match}


def trace_stats(g, cpus: int, instance: str = "") -> dict[str, int]:
    """The same, summed over the CPUs."""
    total: dict[str, int] = {}
    for cpu in range(cpus):
        for name, number in cpu_stats(g, cpu, instance).items():
            total[name] = total.get(name, 0) + number
    return total


def adds_up(stats: dict[str, int]) -> bool:
    """Was nothing lost that was written?"""
    return stats["written"] == sum(stats[name] for name in PLACES)


class Injector:
    """Sends NMIs to all CPUs of a guest until told to stop. The guest has socket_args(path)."""

    def __init__(self, path):
        self.qmp = Qmp.connect(path)
        self.sent = 0
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        """The thread."""
        while not self.stop.is_set():
            self.qmp.command("inject-nmi")
            self.sent += 1
            self.stop.wait(0.0002)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_exc):
        self.stop.set()
        self.thread.join()


def possible(dice: random.Random, names: list[str], options: list[str], cpus: int) -> list[str]:
    """A line for each thing that a user may do to the tracer of a guest with these functions and
    options: to the top level, or to an instance a, b or steady."""
    d, top = dice, dice.random() < 0.6
    at = "" if top else f"instances/{d.choice('ab')}/"
    function, cpu = d.choice(names), d.randrange(1, cpus)
    pattern, event = d.choice([*GLOBS, d.choice(names)]), d.choice(EVENTS)
    return [
        f"echo '{pattern}' {d.choice(['>', '>>'])} {at}set_ftrace_filter",
        f"echo '{pattern}' > {at}set_ftrace_notrace", f"echo > {at}set_ftrace_notrace",
        f"echo {d.choice(TRACERS)} > {at}current_tracer",
        f"mkdir instances/{d.choice('ab')}", f"mkdir instances/{d.choice('ab')}",
        f"rmdir instances/{d.choice('ab')}",
        f"echo {d.choice('01')} > {CPUS}/cpu{cpu}/online", f"echo 1 > {CPUS}/cpu{cpu}/online",
        f"echo {d.choice([8, 64, 300, 1408])} > {at}buffer_size_kb",
        f"echo {d.choice([8, 64, 1408])} > {at}per_cpu/cpu{cpu}/buffer_size_kb",
        f"echo {d.choice([8, 64, 1408])} > instances/steady/buffer_size_kb",
        f"echo {d.choice(['local', 'global', 'counter', 'mono'])} > {at}trace_clock",
        f"echo {d.choice(['', 'no'])}{d.choice(options)} > {at}trace_options",
        f"echo {d.choice('01')} > {at}events/{event}/enable",
        f"echo {d.choice('01')} > {at}events/enable",
        f"echo 'common_pid > {d.randrange(9)}' > {at}events/sched/sched_switch/filter",
        f"echo '{d.choice(['', '!'])}{d.choice(['stacktrace', 'traceon', 'traceoff'])}'"
        f" >> {at}events/sched/sched_switch/trigger",
        f"echo '{d.choice(['', '!'])}{function}:{d.choice(['traceoff', 'traceon'])}'"
        f" >> {at}set_ftrace_filter",
        f"echo {function}:enable_event:sched:sched_switch >> set_ftrace_filter",
        f"echo {d.randrange(20)} > {at}{d.choice(['set_ftrace_pid', 'set_event_pid'])}",
        f"echo > {at}set_ftrace_pid; echo > {at}set_event_pid",
        f"echo {d.choice('012')} > {at}snapshot", f"echo > {at}trace",
        f"echo {d.choice('011')} > {at}tracing_on",
        f"echo {d.choice('01')} > function_profile_enabled",
        f"echo {d.choice('01')} > /proc/sys/kernel/stack_tracer_enabled",
        f"echo {function} > set_graph_function", f"echo {function} > set_graph_notrace",
        "echo > set_graph_function; echo > set_graph_notrace",
        f"echo {d.randrange(4)} > max_graph_depth", f"echo {d.randrange(4)} > tracing_thresh",
        f"echo soak > {at}trace_marker", f"echo {d.randrange(1, 16):x} > {at}tracing_cpumask",
        f"head -n 5 {at}trace", "head -n 5 instances/steady/trace_pipe",
        f"head -n 5 trace_stat/function{cpu}", "head -n 5 stack_trace", "trace reset",
    ]
