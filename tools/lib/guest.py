"""A nopl guest with a person at its console, played by pexpect."""

import pexpect

from lib import qemu

PROMPT = r"nopl:(/[^#\s]*)# "


class Guest(pexpect.spawn):
    """QEMU, its console, and the shell's prompt to talk to."""

    def __init__(self, arch: str, *, smp: int = 1, append: str = "",
                 prompt: bool = True, timeout: float = 60, **options):
        self.machine = qemu.Machine(arch)
        command = self.machine.command(
            smp=smp, append=append, for_input=True, **options)
        super().__init__(command[0], command[1:], timeout=timeout,
                         encoding="utf-8", codec_errors="replace",
                         maxread=65536, preexec_fn=qemu.end_with_parent)
        self.delaybeforesend = None
        self.cwd_shown = None
        self.boot_text = ""
        if prompt:
            self.expect_prompt()
            self.boot_text = self.text_before()

    def __enter__(self) -> "Guest":
        return self

    def __exit__(self, *_exc) -> None:
        self.close(force=True)

    def text_before(self) -> str:
        """What came before the last match, as plain lines."""
        return qemu.Console.ESCAPE.sub("", self.before or "")

    def expect_prompt(self, timeout: float = -1) -> None:
        """Wait for the prompt."""
        try:
            self.expect(PROMPT, timeout=timeout)
        except (pexpect.EOF, pexpect.TIMEOUT) as error:
            raise AssertionError(
                f"no prompt ({type(error).__name__}); the console ended:\n"
                + self.text_before()[-3000:]) from None
        self.cwd_shown = self.match[1]

    def run(self, line: str, timeout: float = -1) -> str:
        """Type a line; what it printed, without the echo."""
        self.send(line + "\r")
        self.expect_prompt(timeout)
        _echo, _, output = self.text_before().partition("\n")
        return output

    def lines(self, line: str, timeout: float = -1) -> list[str]:
        """Type a line; what it printed, as lines."""
        return self.run(line, timeout).splitlines()

    def error(self, line: str) -> str:
        """Type a line that must fail with exactly one line; that line."""
        lines = self.lines(line)
        assert len(lines) == 1, f"{line!r}: one line expected, got {lines}"
        return lines[0]

    def poweroff(self) -> int | None:
        """Type poweroff; the kernel's exit status."""
        self.send("poweroff\r")
        self.expect(pexpect.EOF, timeout=20)
        self.close()
        return self.machine.kernel_status(self.exitstatus)
