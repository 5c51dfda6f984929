# SPDX-License-Identifier: MIT
"""Boot nopl in QEMU and judge its output: the library under tools/run.

A Machine knows one architecture's QEMU (arch/<port>/machine.json) and makes
command lines. Console collects a guest's output and reads the KTAP in it.
boot() runs one guest to its end, and judge() gives the verdict: a pass needs
the test plan met, the end marker seen and the kernel's own exit status, all three.
What QEMU gives by itself is no such status, and lib.witness says whence it came.
"""

import contextlib
import dataclasses
import enum
import os
import platform
import re
import selectors
import subprocess
import time
from pathlib import Path

from lib import iso, port
from lib.bochs import Bochs
from lib.port import ROOT, UsageError, architectures, find_program  # noqa: F401
from lib.stacks import stacks
from lib.watchdog import Watchdog
from lib.witness import Witness, console_args

# Seconds between two looks at a console. QEMU writes one byte at a time, and each of them
# would wake a reader that waits.
GATHER = 0.002

# Seconds that QEMU may take to end when it has closed its output.
LAST_WAIT = 10

# Failed tests that a verdict's reason names, and messages of each.
NAMED = 3

# QEMU translates a function anew when its site changes, and keeps the earlier translation.
# 8 MiB hold all of nopl. With QEMU's own size, up to 1 GiB, the host's caches miss: all tests on
# 2 CPUs cost a tenth (MIPS) to a third (RISC-V, x86-64) more. QEMU gives each CPU a part of its
# own, and begins anew when one is full: 32 CPUs with 8 MiB took three times as long to boot.
TB_MIB = 8
TB_MIB_CPU = 2  # where there are more than 8 CPUs

# Of an ELF header.
EI_DATA, E_MACHINE = 5, slice(18, 20)
ELFDATA2MSB = 2


class Verdict(enum.IntEnum):
    """Exit statuses of tools/run."""

    PASS = 0
    FAIL = 1
    USAGE = 2
    BROKEN = 3
    TIMEOUT = 4


class Machine:
    """One architecture's QEMU: how to start it, the meaning of its status. arch/README.md
    explains the keys of machine.json."""

    def __init__(self, arch: str):
        self.arch = arch
        self.info = port.read(arch)
        self.elf = self.kernel = ROOT / "build" / arch / "nopl.elf"

    @property
    def gdb(self) -> list[str]:
        """gdb's commands before it connects. Its own 2 s are too few for QEMU on a busy host, and
        it takes a late answer for another's."""
        return ["set remotetimeout 300", *self.info.get("gdb", [])]

    def command(self, *, smp: int = 1, elf: Path | str | None = None,
                append: str = "", memory: str = "256M",
                icount: int | str | None = None, cpu: str | None = None,
                accel: str | None = None, interactive: bool = False,
                for_input: bool = False, extra: tuple | list = (),
                image: str | None = None) -> list[str]:
        """The command line. Not interactive: a panic ends the machine. accel: "kvm".
        icount: an instruction takes 2^icount ns. "lab": as long as the port's lab needs. A kernel
        that is slower than that is not told, for it could not count instructions by its clock.
        for_input: a person types, or a program asks QEMU. Then an idle guest's time passes as the
        host's does, under -icount as well. Otherwise QEMU goes from one timer to the next at
        once, and there are guests for which it never comes to read what is typed.
        image: a file where a CD image with the kernel is made, from which the machine starts."""
        if not 1 <= smp <= 255:
            raise UsageError(f"--smp {smp}: must be 1 to 255")
        elf = Path(elf or self.elf)
        program = self.info[self.program(elf)]
        args = list(self.info["args"])
        if smp == 1:
            args += self.info.get("smp1_args", [])
        counts = not icount or icount == "lab"
        if icount == "lab":
            icount = self.info.get("lab_icount", 0)
        if icount is not None:
            args += ["-icount", f"shift={icount},sleep={'on' if for_input else 'off'}"]
            args += self.info.get("icount_args", [])
            if counts:
                append = f"icount=1 {append}"
        if not interactive:
            append = f"panic=exit {append}"
        if cpu:
            args = replace_option(args, "-cpu", cpu)
        args += self.accelerator(accel or "tcg", args, icount is not None, smp)
        self.kernel, start = elf, ["-kernel", str(elf), "-append", append.strip()]
        if image:
            iso.make(self.arch, elf, append.strip(), image)
            start = ["-cdrom", image]
        return [find_program(program), *args,
                "-smp", str(smp), "-m", memory, "-no-reboot",
                "-display", "none", *console_args(),
                *start, *extra]

    def accelerator(self, accel: str, args: list[str], icount: bool, smp: int) -> list[str]:
        """QEMU's arguments for an accelerator. UsageError: why it cannot be used here."""
        if accel == "tcg":
            return ["-accel", f"tcg,tb-size={TB_MIB if smp <= 8 else TB_MIB_CPU * smp}"]
        if accel != "kvm":
            raise UsageError(f"--accel {accel}: tcg and kvm are accepted")
        if icount:
            raise UsageError("--accel kvm: it does not count instructions, as --icount does")
        if platform.machine() != self.arch:
            raise UsageError(f"--accel kvm: this machine is {platform.machine()}, "
                             f"not {self.arch}")
        if not os.access("/dev/kvm", os.R_OK | os.W_OK):
            raise UsageError("--accel kvm: there is no /dev/kvm that may be used here")
        # Does QEMU come as far as its monitor, with this CPU model?
        try:
            probe = subprocess.run(
                [find_program(self.info["qemu"]), *args, "-accel", "kvm", "-S", "-display",
                 "none", "-serial", "none", "-monitor", "stdio"], input="quit\n",
                text=True, capture_output=True, timeout=20, check=False)
        except subprocess.TimeoutExpired:
            raise UsageError("--accel kvm: QEMU hangs with it here") from None
        if probe.returncode:
            why = (probe.stderr.strip().splitlines() or [f"status {probe.returncode}"])[0]
            raise UsageError(f"--accel kvm: it does not work here: {why}")
        return ["-accel", "kvm"]

    def program(self, elf: Path) -> str:
        """Which of machine.json's programs runs the kernel: its byte order. UsageError: this is
        no kernel of the architecture."""
        if not elf.is_file():
            raise UsageError(f"there is no {elf}: make ARCH={self.arch}")
        with open(elf, "rb") as file:
            header = file.read(E_MACHINE.stop)
        if header[:4] != b"\x7fELF" or len(header) < E_MACHINE.stop:
            raise UsageError(f"{elf} is no ELF file: make ARCH={self.arch}")
        big = header[EI_DATA] == ELFDATA2MSB
        machine = int.from_bytes(header[E_MACHINE], "big" if big else "little")
        wanted = self.info["elf_machine"]
        if machine != wanted:
            raise UsageError(f"{elf} is of another architecture (e_machine {machine}, not "
                             f"{wanted}): make ARCH={self.arch}")
        return "qemu_big" if big and "qemu_big" in self.info else "qemu"


def replace_option(args: list[str], name: str, value: str) -> list[str]:
    """args with the option's value replaced, or with the option added."""
    if name in args:
        at = args.index(name) + 1
        return [*args[:at], value, *args[at + 1:]]
    return [*args, name, value]


@dataclasses.dataclass
class TestRun:
    """One KTAP document: the output of one `test` command."""

    planned: int | None = None
    passed: list[str] = dataclasses.field(default_factory=list)
    failed: list[str] = dataclasses.field(default_factory=list)
    skipped: list[str] = dataclasses.field(default_factory=list)
    marker: tuple[int, int, int] | None = None
    running: str | None = None  # the test that has begun and not ended
    begun: float = 0.0  # when it did
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    reasons: dict[str, str] = dataclasses.field(default_factory=dict)  # of skipped tests
    diagnostics: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    unheard: str | None = None  # the test that was skipped though a key was typed for it

    def counts(self) -> tuple[int, int, int]:
        """Passed, failed, skipped."""
        return len(self.passed), len(self.failed), len(self.skipped)

    def problem(self) -> str | None:
        """Why this run proves nothing, or None when it is complete."""
        done = sum(self.counts())
        if self.planned is None:
            return "tests began, but printed no plan"
        if done != self.planned:
            return (f"{done} of {self.planned} planned tests reported"
                    + (f"; {self.running} was running" if self.running
                       else ""))
        if self.marker is None:
            return "the end marker is missing"
        if self.marker != self.counts():
            return (f"the end marker says {self.marker}, "
                    f"the results say {self.counts()}")
        return None


class Console:
    """The guest's output, line by line, and the KTAP found in it."""

    RESULT = re.compile(r"(not )?ok (\d+) -? ?([^#\s]+)\s*(?:# *(?:(SKIP) *)?(.*))?$")
    MARKER = re.compile(
        r"# nopl tests: (\d+) passed, (\d+) failed, (\d+) skipped$")
    ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
    WANTS_KEY = "# type a key"  # of arch.console_irq_enable

    def __init__(self, on_line=None, on_failure=None):
        """on_failure(name, what it said) is called when a test has failed."""
        self.lines: list[str] = []
        self.runs: list[TestRun] = []
        self.type_key = None  # called when a test wants a key
        self._typed_for: str | None = None
        self._partial = ""
        self._pending: list[str] = []
        self._on_line = on_line
        self._on_failure = on_failure

    def feed(self, data: bytes) -> None:
        """Take more output. Whole lines are read at once."""
        text = self._partial + data.decode("utf-8", "replace")
        *lines, self._partial = text.split("\n")
        for line in lines:
            self._line(self.ESCAPE.sub("", line))

    def close(self) -> None:
        """The guest has ended: the rest of the text is a line too."""
        if self._partial:
            self._line(self.ESCAPE.sub("", self._partial))
            self._partial = ""

    def _line(self, line: str) -> None:
        self.lines.append(line)
        if self._on_line:
            self._on_line(line)
        if line == "KTAP version 1":
            self.runs.append(TestRun())
            self._pending = []
        elif self.runs:
            self._ktap(self.runs[-1], line)

    def _ktap(self, run: TestRun, line: str) -> None:
        if match := re.fullmatch(r"1\.\.(\d+)", line):
            run.planned = int(match[1])
        elif match := self.RESULT.match(line):
            kind = (run.skipped if match[4] else
                    run.failed if match[1] else run.passed)
            kind.append(match[3])
            if match[4]:
                run.reasons[match[3]] = match[5]
                if self._typed_for == match[3]:
                    run.unheard = match[3]
            if run.running == match[3]:
                run.seconds[match[3]] = time.monotonic() - run.begun
            if match[1] and self._pending:
                run.diagnostics[match[3]] = self._pending
            self._pending = []
            run.running = None
            if kind is run.failed and self._on_failure:
                self._on_failure(match[3], run.diagnostics.get(match[3], []))
        elif match := self.MARKER.match(line):
            run.marker = (int(match[1]), int(match[2]), int(match[3]))
        elif line.startswith("# begin "):
            run.running = line.removeprefix("# begin ").strip()
            run.begun = time.monotonic()
        elif line == self.WANTS_KEY and self.type_key:
            self.type_key()
            self._typed_for = run.running
        elif line.startswith("# "):
            self._pending.append(line)

    def panic(self) -> str | None:
        """The line with which a panic began."""
        for line in self.lines:
            if re.match(r"(kernel )?panic\b", line, re.I):
                return line.strip()
        return None


@dataclasses.dataclass
class Boot:
    """How one guest ended."""

    console: Console
    status: int | None      # the kernel's own. None: it gave none
    qemu_status: int | None  # None: killed after the timeout
    seconds: float
    # Where each CPU stood when the guest was given up: its calls, innermost first.
    stacks: list[str] = dataclasses.field(default_factory=list)
    hung: bool = False  # given up because a test hangs, not because time was up
    ran: bool = True  # QEMU took its arguments, and ran a kernel
    why: str = ""  # QEMU ended, where the kernel gave no status


ENDED, HANGS, LATE = "ended", "hangs", "late"  # how reading a console ends


def boot(machine: Machine, command: list[str], timeout: float | None = None,
         log: Path | str | None = None, on_line=None, on_start=None,
         on_failure=None, on_hang=None, bochs: Bochs | None = None) -> Boot:
    """Run a guest until it ends, at most timeout seconds of wall clock. None: 120, or 1500
    where it begins with tests. A test that hangs ends it sooner. If it was given up, the
    result has the CPUs' stacks. on_start(pid) is called when QEMU runs, on_hang(test) before gdb
    looks for the stacks. bochs: what runs instead of QEMU."""
    console = Console(on_line, on_failure)
    start = time.monotonic()
    tests = 'run="test' in " ".join(command)
    timeout = timeout or (1500 if tests else 120)
    where: list[str] = []
    witness = bochs or Witness(command, machine.info.get("ends"))
    # Under -icount no key is asked for, and a pipe to type at makes two runs differ.
    keys = subprocess.PIPE if tests and not bochs and "-icount" not in command else \
        subprocess.DEVNULL
    with witness.start(stdin=keys, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       bufsize=0) as process:
        if process.stdin:
            console.type_key = lambda: type_key(process)
        if on_start:
            on_start(process.pid)
        sink = open(log, "wb") if log else None
        watchdog = Watchdog(process.pid, console, tests,
                            bool(bochs or {"-icount", "-plugin"} & {*command}))
        try:
            how = _collect(process, console, start + timeout, sink, watchdog)
            if how == HANGS and on_hang:
                on_hang(watchdog.test)
            if how != ENDED and not bochs:
                where = stacks(machine, witness.qmp)
        finally:
            if process.poll() is None:
                process.kill()
            if sink:
                sink.close()
    console.close()
    done = Boot(console, None, None, time.monotonic() - start, where, how == HANGS)
    if how == ENDED:
        done.qemu_status = process.returncode
        done.status = witness.kernel_status(process.returncode, console.lines)
        if done.status is None:
            done.ran, done.why = witness.ended(process.returncode, console.lines)
    return done


def type_key(process: subprocess.Popen) -> None:
    """On the guest's console. It may have ended meanwhile."""
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(b"\n")


def _collect(process: subprocess.Popen, console: Console, deadline: float,
             sink, watchdog: Watchdog) -> str:
    """Read until the guest closes its output: ENDED, or until a test hangs: HANGS, or
    until time is up: LATE."""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            if watchdog.hangs():
                return HANGS
            if not selector.select(min(left, 0.5)):
                continue
            time.sleep(GATHER)
            data = os.read(process.stdout.fileno(), 65536)
            if not data:
                return ENDED if _has_ended(process, LAST_WAIT) else LATE
            console.feed(data)
            if sink:
                sink.write(data)
    return LATE


def _has_ended(process: subprocess.Popen, seconds: float) -> bool:
    """Has it, or does it within that time?"""
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def refused_parameter(lines: list[str]) -> str | None:
    """The kernel's words on a boot parameter that it did not take as it stood (an unknown name, a
    bad value, an open quote, a line cut short), if these lines of its boot have some."""
    for line in lines:
        if line == "KTAP version 1":  # a test may try one on purpose
            break
        if line.startswith("param: "):
            return line.partition(" (known:")[0]
    return None


def judge(result: Boot, expect: tuple | list = (),
          refused_parameters: bool = False) -> tuple[Verdict, str]:
    """The verdict and its reason, one line without a newline.

    Tests must have run, unless expect names regular expressions: then each
    must be found in a line, in that order, and tests may have run. A parameter that
    the kernel refuses is a mistake of the caller's, unless refused_parameters.
    """
    verdict, reason = _judge(result, expect)
    refused = refused_parameter(result.console.lines)
    if not refused or refused_parameters:
        return verdict, reason
    return (Verdict.USAGE if verdict == Verdict.PASS else verdict), f"{reason}, but {refused}"


def _judge(result: Boot, expect: tuple | list) -> tuple[Verdict, str]:
    console = result.console
    if not result.ran:
        return Verdict.USAGE, result.why
    if result.qemu_status is None:
        last = next((x for x in reversed(console.lines) if x.strip()), "")
        running = [run.running for run in console.runs if run.running]
        busy = [x for x in result.stacks if x.startswith("CPU ") and "idle_main" not in x]
        first = " <- ".join("".join((busy or result.stacks)[:1]).split(" <- ")[:4])
        return Verdict.TIMEOUT, (f"no end after {result.seconds:.0f} s; "
                                 + (f"{running[-1]} "
                                    f"{'hangs' if result.hung else 'was running'}; "
                                    f"{first}" if running else
                                    f"last line: {last.strip()!r}; {first}"))
    if reason := _broken(result, expect):
        panic = console.panic()
        return Verdict.BROKEN, reason + (f": {panic}" if panic else "")
    failed = [" ".join([f"{name}:", *(said.removeprefix("# ") for said in
                                      run.diagnostics.get(name, [])[:NAMED])])
              for run in console.runs for name in run.failed]
    failed += [f"{run.unheard}: a key was typed, and its interrupt did not come"
               for run in console.runs if run.unheard]
    passed, failures, skipped = (
        sum(run.counts()[i] for run in console.runs) for i in range(3))
    done = f"{passed} passed, {failures} failed, {skipped} skipped" if console.runs else \
        "all expected lines seen"
    if failed:
        more = [f"{len(failed) - NAMED} more"] if len(failed) > NAMED else []
        return Verdict.FAIL, f"{done}: " + "; ".join(failed[:NAMED] + more)
    if result.status != 0:
        panic = console.panic()
        return Verdict.BROKEN, (f"{done}, but {_ended(result)}"
                                + (f": {panic}" if panic else ""))
    return Verdict.PASS, done


def _ended(result: Boot) -> str:
    if result.status is None:
        return f"the kernel gave no status: {result.why or 'QEMU ended'}"
    return f"the kernel ended with status {result.status}"


def _broken(result: Boot, expect: tuple | list) -> str | None:
    """Why this boot proves nothing, if so."""
    console = result.console
    ended = _ended(result)
    for run in console.runs:
        if problem := run.problem():
            return f"{problem}; {ended}"
    at = 0
    for pattern in expect:
        while at < len(console.lines) and \
                not re.search(pattern, console.lines[at]):
            at += 1
        if at == len(console.lines):
            return f"no line matches {pattern!r}; {ended}"
        at += 1
    if not expect and not any(run.passed or run.failed
                              for run in console.runs):
        return (f"every test was skipped; {ended}" if console.runs
                else f"no test ran; {ended}")
    return None
