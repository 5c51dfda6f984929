# SPDX-License-Identifier: MIT
"""The rules of the tree that say which file may include which, where a function is declared,
and who may turn interrupts off. Prints a line for each thing that is wrong. tools/check runs it."""

import re
import subprocess
from pathlib import Path

from floors import check_floors

ROOT = Path(__file__).resolve().parent.parent.parent
FILES = [Path(n) for n in subprocess.run(
    ["git", "ls-files", "-co", "--exclude-standard", "arch", "boot", "kernel",
     "tracer"], cwd=ROOT, check=True, text=True, capture_output=True
).stdout.split() if re.search(r"\.[chS]$", n) and (ROOT / n).exists()]
PORTS = {p.parent.name for p in ROOT.glob("arch/*/port.mk")}
# The port's headers that every file may include, found by -I.
CONTRACTS = {Path("arch/arch.h"), Path("arch/arch_trace.h"),
             Path("arch/arch_lab.h")}


def text_of(path: Path) -> str:
    """Without comments."""
    return re.sub(r"/\*.*?\*/", " ", (ROOT / path).read_text(), flags=re.S)


def includes(path: Path) -> list[str]:
    """The headers that a file includes, of the tree's folders."""
    return re.findall(r"^\s*#\s*include <((?:arch|boot|kernel|tracer)/[^>]+)>",
                      (ROOT / path).read_text(), re.M)


def of_port(path: Path) -> bool:
    """Does the file belong to a port's own folder?"""
    return path.parts[0] in ("arch", "boot") and path.parts[1] in PORTS


def allowed_to_ports() -> set[str]:
    """The kernel's headers that arch.h names."""
    comment = re.search(r"may include these headers of the kernel(.*?)\n \*\n",
                        (ROOT / "arch/arch.h").read_text(), re.S)
    return {f"kernel/{n}" for n in re.findall(r"[\w/]+\.h", comment[1])
            if n != "tools/check"}


def floors() -> list[str]:
    """Lower floors include no higher ones, and ports only what arch.h names."""
    wrong = []
    allowed = allowed_to_ports()
    for path in FILES:
        lab = path.name.startswith(("lab.", "lab_test.")) and of_port(path)
        for name in includes(path):
            if of_port(path) and name.startswith("kernel/") and \
                    name not in allowed and not lab:
                wrong.append(f"{path}: {name} is not among the headers that "
                             "arch/arch.h names for ports")
            if name.startswith("tracer/") and path.parts[0] != "tracer" and \
                    path.parts[:2] != ("arch", "conform") and not lab:
                wrong.append(f"{path}: {name} is of a higher floor")
            if name.startswith("tracer/lab/") and path.parts[0] == "tracer" \
                    and path.parts[1] != "lab":
                wrong.append(f"{path}: the tracer includes nothing of the lab")
            if name.endswith("_internal.h") and not lab and \
                    path.parts[0] != name.split("/")[0]:
                wrong.append(f"{path}: {name} is another floor's own")
    return wrong


def definitions() -> dict[str, set[Path]]:
    """Of each function that is not static, the files that define it."""
    found: dict[str, set[Path]] = {}
    for path in FILES:
        if path.suffix == ".c":
            names = re.findall(
                r"^(?!static\b|typedef\b|#|\s|KTEST)[A-Za-z_][\w \*]*?[ \*]"
                r"(\w+)\([^;{]*\)\n\{", text_of(path), re.M)
        elif path.suffix == ".S":
            names = re.findall(r"^(\w+):", text_of(path), re.M)
        else:
            continue
        for name in names:
            found.setdefault(name, set()).add(path)
    return found


def owners() -> list[str]:
    """A header declares what the source file of the same name defines, and nothing
    else. A room's own header (*_internal.h, or the room's name) declares what files
    of that room define. The contract declares what ports define."""
    wrong = []
    where = definitions()
    for path in FILES:
        if path.suffix != ".h" or of_port(path) or path in CONTRACTS:
            continue
        for name in re.findall(
                r"^(?!static\b|typedef\b|#|\s|return\b|extern\b|else\b)"
                r"[A-Za-z_][\w ]*[ \*]+(\w+)\([^;{]*\)[^;{]*;",
                text_of(path), re.M):
            files = where.get(name, set())
            room = path.stem.endswith("_internal") or \
                path.parent == Path("arch/conform")
            right = {f for f in files if f.parent == path.parent and
                     (room or f.stem == path.stem)}
            if files and not right:
                wrong.append(f"{path}: {name}() is defined in "
                             f"{min(map(str, files))}")
    return wrong


def twice() -> list[str]:
    """No file includes a header twice."""
    wrong = []
    for path in FILES:
        seen = set()
        for name in includes(path):
            if name in seen:
                wrong.append(f"{path}: includes {name} twice")
            seen.add(name)
    return wrong


# What the latency tracers must not watch, or cannot: see kernel/event/latency.h.
UNWATCHED = {Path("kernel") / name for name in (
    "event/latency.h", "panic.c", "cpu/hotplug.c", "sched/sched.c")}


def watched() -> list[str]:
    """The kernel turns interrupts off where irqsoff sees it."""
    return [f"{path}: {call}() is not seen by the tracer irqsoff: {call[5:]}() of "
            "kernel/event/latency.h is"
            for path in FILES
            if path.parts[0] == "kernel" and path not in UNWATCHED
            and not path.stem.endswith("_test")
            for call in re.findall(r"\b(arch_irq_(?:save|restore|enable|disable))\(",
                                   text_of(path))]


if __name__ == "__main__":
    for line in floors() + owners() + twice() + watched() + check_floors():
        print(line)
