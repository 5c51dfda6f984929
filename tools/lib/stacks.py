# SPDX-License-Identifier: MIT
"""Where the CPUs and tasks of a running guest stand, by gdb: for a guest that is given up."""

import re
import subprocess
import tempfile

from lib.port import ROOT, UsageError, find_program
from lib.qmp import Qmp

NONE = "gdb shows no stacks"


def gdb_socket(qmp: Qmp, folder: str) -> str:
    """Have QEMU open a socket for gdb in the folder. Returns its path. Raises as Qmp.command()."""
    path = f"{folder}/gdb"
    qmp.monitor(f"gdbserver unix:{path},server=on,wait=off")
    return path


def ask_gdb(machine, elf: str, qmp: Qmp) -> str:
    """gdb's output: its own walk of each CPU, which ends where a trap began, and nopl-bt."""
    with tempfile.TemporaryDirectory() as folder:
        commands = [*machine.gdb, "set print frame-arguments none",
                    f"source {ROOT}/tools/gdb/nopl.py",
                    f"target remote {gdb_socket(qmp, folder)}",
                    "thread apply all -q backtrace 12", "nopl-bt", "nopl-cpus"]
        return subprocess.run(
            [find_program("gdb-multiarch"), "-nx", "-q", "-batch", elf,
             *(word for c in commands for word in ("-ex", c))],
            text=True, capture_output=True, timeout=30, check=False).stdout


def stacks(machine, qmp: Qmp) -> list[str]:
    """The calls that each CPU of a guest stands in, then what each CPU is at, then each task, a
    line each, or NONE, and why."""
    try:
        text = ask_gdb(machine, str(machine.kernel), qmp)
    except subprocess.TimeoutExpired:
        return [f"{NONE}: QEMU has not answered it for 30 s"]
    except (OSError, RuntimeError, UsageError) as error:
        return [f"{NONE}: {error}"]
    found: list[list[str]] = []
    lines = text.split("\n")
    tasks = [f"task {line}" for line in lines
             if re.match(r"\S+ \(\d+\)(?: on CPU \d+|, \w+): ", line)]
    for line in lines:
        if match := re.match(r"#(\d+) .*?([\w.?]+) \(.*?(?: at (\S+))?$"
                             r"|#(\d+) +<signal handler called>", line):
            if "0" in (match[1], match[4]):
                found.append([])
            found[-1].append((match[2] or "a trap") + (f" ({match[3]})" if match[3] else ""))
    # gdb shows the last thread first.
    return [*(f"CPU {i}: " + " <- ".join(calls) for i, calls in enumerate(reversed(found))),
            *(x for x in lines if re.match(r"CPU \d+, ", x)), *tasks] or [NONE]
