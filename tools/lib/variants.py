# SPDX-License-Identifier: MIT
"""The kernels that can be made: ARCH x SITES x ENDIAN x RECORD, make's verdict on
each, and the result of a boot. For tools/features and its test."""

import dataclasses
import functools
import os
import re
import subprocess
from pathlib import Path

from lib import qemu

ROOT = qemu.ROOT
SITES_LINE = re.compile(r"sites: (\d+) calls \+ (\d+) jumps = (\d+) patched \+ (\d+) skipped \+ "
                        r"(\d+) failed, nop=(.*?), ")


def run_make(*args: str, cwd: Path = ROOT) -> subprocess.CompletedProcess:
    """make, its output kept. Variables of a make above it do not reach it."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("MAKE", "MFLAGS")) and
           k not in ("ARCH", "SITES", "ENDIAN", "RECORD", "O", "V")}
    return subprocess.run(["make", *args], cwd=cwd, text=True, env=env,
                          capture_output=True, check=False)


@functools.cache
def choices(arch: str) -> dict[str, list[str]]:
    """The values of the port's SITES, RECORD and ENDIAN, from its Makefile: all
    that are known, refused ones too."""
    done = run_make("-s", f"ARCH={arch}", "choices")
    return {name: words.split() for name, _, words in
            (line.partition(":") for line in done.stdout.splitlines())}


@dataclasses.dataclass(frozen=True)
class Variant:
    """One way to make a kernel."""

    arch: str
    sites: str
    endian: str
    record: str

    def __str__(self) -> str:
        return "-".join((self.arch, self.sites, self.endian, self.record))

    def make_args(self) -> list[str]:
        """Variables for make."""
        return [f"ARCH={self.arch}", f"SITES={self.sites}",
                f"ENDIAN={self.endian}", f"RECORD={self.record}"]

    def elf(self) -> Path:
        """Where the kernel is, once it is made."""
        done = run_make("-s", *self.make_args(), "choices")
        return ROOT / re.search(r"^elf: (\S+)$", done.stdout, re.M)[1]


def variants(arch: str) -> list[Variant]:
    """All of an architecture, one for each thing that is refused whole."""
    known = choices(arch)
    every = [Variant(arch, sites, endian, record)
             for endian in known["endians"] for sites in known["sites"]
             for record in known["records"]]
    default = known["sites"][0]
    return every + [
        Variant(arch, default if word in ("big", "little") else word,
                word if word in ("big", "little") else known["endians"][0], "link")
        for word in known["refused"] if "_" not in word]


@dataclasses.dataclass
class Made:
    """Make's verdict: "made", "refused" before it began, "wrong": the record
    does not agree with the linked text, "broken": none of these."""

    state: str
    reason: str = ""


def read_make(variant: Variant, done: subprocess.CompletedProcess) -> Made:
    """From make's exit status and its last words."""
    if done.returncode == 0:
        return Made("made")
    if match := re.search(rf"\*\*\* ({variant.arch}: .*)\.  Stop",
                          done.stderr):
        return Made("refused", match[1])
    if match := re.search(r"^object: .*$", done.stderr, re.M):
        return Made("wrong", match[0])
    lines = done.stderr.strip().splitlines()
    return Made("broken", lines[0] if lines else "make failed")


@dataclasses.dataclass
class Booted:
    """The result of one boot with all in-kernel tests."""

    verdict: qemu.Verdict
    reason: str
    sites_boot: int = 0
    patched: int = 0
    skipped: int = 0
    failed: int = 0
    nop: str = ""
    tests_passed: int = 0
    tests_failed: int = 0
    tests_skipped: int = 0


def boot(variant: Variant, tests: str = "", *, smp: int = 2,
         icount: int | None = None, timeout: float = 300,
         append: str = "") -> Booted:
    """Boot it and run the tests whose name matches one of the globs, which blanks
    separate, or all."""
    machine = qemu.Machine(variant.arch)
    runs = "".join(f"test {glob}; " for glob in tests.split() or [""])
    command = machine.command(
        smp=smp, elf=variant.elf(), icount=icount,
        append=f'{append} run="{runs}poweroff"')
    result = qemu.boot(machine, command, timeout)
    booted = Booted(*qemu.judge(result))
    for line in result.console.lines:
        if match := SITES_LINE.match(line):
            calls, jumps, booted.patched, booted.skipped, booted.failed = (
                int(x) for x in match.groups()[:5])
            booted.sites_boot = calls + jumps
            booted.nop = match[6]
    for run in result.console.runs:
        booted.tests_passed += len(run.passed)
        booted.tests_failed += len(run.failed)
        booted.tests_skipped += len(run.skipped)
    return booted
