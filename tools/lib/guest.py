# SPDX-License-Identifier: MIT
"""A nopl guest with a person at its console, played by pexpect."""

import os
import subprocess
import time

import pexpect
from pexpect.fdpexpect import fdspawn

from lib import qemu
from lib.stacks import NONE, stacks
from lib.witness import Witness

PROMPT = r"nopl:(/[^#\s]*)# "


class Guest(fdspawn):
    """QEMU, its console, and the shell's prompt to talk to. The console is two pipes: a
    terminal costs the host more for each byte than QEMU does."""

    def __init__(self, arch: str, *, smp: int = 1, append: str = "",
                 prompt: bool = True, timeout: float = 60,
                 refused_parameters: bool = False, **options):
        """refused_parameters: the kernel need not take each parameter in append."""
        self.machine = qemu.Machine(arch)
        command = self.machine.command(
            smp=smp, append=append, for_input=True, **options)
        self.witness = Witness(command, self.machine.info.get("ends"))
        self.qmp = self.witness.qmp
        self.process = self.witness.start(
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True)
        self.pid = self.process.pid
        super().__init__(self.process.stdout, timeout=timeout, encoding="utf-8",
                         codec_errors="replace", maxread=65536)
        self.command = command
        self.cwd_shown = None
        self.boot_text = ""
        if prompt:
            try:
                self.expect_prompt()
            except BaseException:
                self.close()
                raise
            self.boot_text = self.text_before()
            refused = qemu.refused_parameter(self.boot_text.splitlines())
            if refused and not refused_parameters:
                self.close()
                raise qemu.UsageError(f"{refused}; refused_parameters=True allows that")

    def __enter__(self) -> "Guest":
        return self

    def __exit__(self, *_exc) -> None:
        self.close()

    def read_nonblocking(self, size: int = 1, timeout: float | None = -1) -> str:
        """The guest's output so far. Not at once: see qemu.GATHER."""
        time.sleep(qemu.GATHER)
        return super().read_nonblocking(size, timeout)

    def send(self, s: str) -> int:
        """Type it. Returns how many bytes that were. If QEMU has ended, what is read next says
        so."""
        try:
            return os.write(self.process.stdin.fileno(), s.encode())
        except BrokenPipeError:
            return 0

    def isalive(self) -> bool:
        """Has QEMU not ended?"""
        return self.process.poll() is None

    def close(self) -> None:
        """End QEMU, if it has not ended. Returns when it has."""
        self.process.kill()
        self.process.communicate()

    def text_before(self) -> str:
        """The output before the last match, as plain lines."""
        return qemu.Console.ESCAPE.sub("", self.before or "")

    def expect_prompt(self, timeout: float = -1) -> None:
        """Wait for the prompt."""
        self.expect_or_tell(PROMPT, "prompt", timeout)
        self.cwd_shown = self.match[1]

    def expect_or_tell(self, pattern, name: str, timeout: float) -> None:
        """Wait for the pattern. AssertionError: it does not come, why, what stands on the console,
        and if time is up, where each CPU and each task stands."""
        try:
            self.expect(pattern, timeout=timeout)
        except (pexpect.EOF, pexpect.TIMEOUT) as error:
            late = isinstance(error, pexpect.TIMEOUT)
            raise AssertionError("\n".join([
                f"no {name} ({self.why(error, timeout)}); the console ended:",
                self.text_before()[-3000:], *(self.where() if late else [])])) from None

    def where(self) -> list[str]:
        """Where each CPU and each task stands, a line each, by gdb: the guest notices nothing.
        If gdb cannot say, the guest's own list of tasks, after Ctrl-C."""
        lines = stacks(self.machine, self.qmp)
        if lines[0].startswith(NONE):
            try:
                for typed in ("\x03", "ps\r"):
                    self.send(typed)
                    self.expect(PROMPT, timeout=5)
                lines += self.text_before().splitlines()
            except (pexpect.EOF, pexpect.TIMEOUT):
                lines.append("the guest does not answer Ctrl-C")
        return lines

    def why(self, error: Exception, timeout: float) -> str:
        """Why there is nothing more to read: time is up, or QEMU has ended, and then why."""
        if isinstance(error, pexpect.TIMEOUT):
            return f"waited for {self.timeout if timeout == -1 else timeout:g} s"
        status = self.process.wait(timeout=qemu.LAST_WAIT)
        kernel = self.witness.kernel_status(status)
        if kernel is not None:
            return f"the kernel ended with status {kernel}"
        return self.witness.ended(status, self.text_before().splitlines())[1]

    def run(self, line: str, timeout: float = -1, check: bool = False) -> str:
        """Type a line, and return its output, unechoed. check: AssertionError if the line's last
        command has failed, by the guest's own $?, which is 0 from then on."""
        self.send(line + "\r")
        self.expect_prompt(timeout)
        _echo, _, output = self.text_before().partition("\n")
        if check and (status := self.run("echo $?").strip()) != "0":
            raise AssertionError(f"{line!r} has failed with {status}: {output.strip()}")
        return output

    def lines(self, line: str, timeout: float = -1, check: bool = False) -> list[str]:
        """Type a line, and return its output, as lines."""
        return self.run(line, timeout, check).splitlines()

    def error(self, line: str) -> str:
        """Type a line that must fail with exactly one line, and return that line."""
        lines = self.lines(line)
        assert len(lines) == 1, f"{line!r}: one line expected, got {lines}"
        return lines[0]

    def poweroff(self) -> int | None:
        """Type poweroff, and return the kernel's exit status, or None if it gave none."""
        self.send("poweroff\r")
        self.expect_or_tell(pexpect.EOF, "end", 20)
        return self.witness.kernel_status(self.process.wait(timeout=20))
