# SPDX-License-Identifier: MIT
"""The ports, and their data files: arch/NAME/machine.json. arch/README.md
explains each key. tools/lib/arch.c reads "code" and "sites" for the tools in C."""

import json
import platform
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# The most CPUs that nopl runs on. A machine may have fewer: `most_cpus` of its port's tests.
MAX_CPUS = int(re.search(r"^#define MAX_CPUS (\d+)$",
                         (ROOT / "kernel" / "types.h").read_text(), re.M)[1])


class UsageError(Exception):
    """Something that the caller has to put right. Its text is one line."""


# Key, its kind, must it be there.
TEXT, LIST, OBJECT, NUMBER = "a string", "a list", "an object", "a number"
KEYS = {
    "packages": (OBJECT, True), "qemu": (TEXT, True), "qemu_big": (TEXT, False),
    "args": (LIST, True), "smp1_args": (LIST, False), "icount_args": (LIST, False),
    "ends": (OBJECT, False),
    "lab_icount": (NUMBER, False), "cpu_start": (TEXT, False), "gdb": (LIST, False),
    "debugger": (OBJECT, True), "iso": (OBJECT, False), "test_packages": (OBJECT, False),
    "objdump": (LIST, True),
    "elf_machine": (NUMBER, True), "limits": (OBJECT, True),
    "linux": (OBJECT, False), "code": (OBJECT, True), "fetch": (OBJECT, True),
    "interrupts": (OBJECT, True),
    "sites": (OBJECT, True), "tests": (OBJECT, True),
}
TESTS = {
    TEXT: lambda x: isinstance(x, str), LIST: lambda x: isinstance(x, list),
    OBJECT: lambda x: isinstance(x, dict), NUMBER: lambda x: isinstance(x, int),
}


def architectures() -> list[str]:
    """Every port: each folder of arch/ that has a port.mk."""
    return sorted(p.parent.name for p in ROOT.glob("arch/*/port.mk"))


def default() -> str:
    """The port that is taken where none is asked for: the host's, as in the Makefile."""
    ports = architectures()
    return platform.machine() if platform.machine() in ports else ports[0]


def read(arch: str) -> dict:
    """A port's data. UsageError: no such port, or a file that is not right."""
    if arch not in architectures():
        raise UsageError(f"--arch {arch} is unknown; choose one of: "
                         + " ".join(architectures())
                         + f" (a new port begins with arch/{arch}/port.mk)")
    path = ROOT / "arch" / arch / "machine.json"
    name = path.relative_to(ROOT)
    try:
        info = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"{name}: {error}") from None
    for key in info:
        if key not in KEYS:
            raise UsageError(f"{name}: no field {key} is known; accepted: "
                             + " ".join(KEYS))
    for key, (kind, required) in KEYS.items():
        if key not in info and required:
            raise UsageError(f"{name}: the field {key} is missing: {kind}")
        if key in info and not TESTS[kind](info[key]):
            raise UsageError(f"{name}: {key} must be {kind}")
    return info


def packages(test: bool = True) -> dict[str, str]:
    """The ports' needs: Debian's packages, and of each a program or file in it. test: those of
    tests alone, too."""
    found = {}
    for info in map(read, architectures()):
        found |= info["packages"] | (info.get("test_packages", {}) if test else {})
    return found


def find_program(name: str) -> str:
    """Path of a program, or an error that names its Debian package."""
    path = shutil.which(name)
    if not path:
        package = {proof: p for p, proof in packages().items()}
        raise UsageError(f"{name} is missing: "
                         f"apt-get install {package.get(name, name)}")
    return path


if __name__ == "__main__":  # for tools/setup
    for package, proof in packages("test" in sys.argv).items():
        print(package, proof)
