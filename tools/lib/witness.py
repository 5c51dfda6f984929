# SPDX-License-Identifier: MIT
"""Why a QEMU ended, in its own words: a witness beside its exit status.

QEMU ends with 0 when the machine resets (-no-reboot), when a signal or a monitor ends it,
and with 1 when it cannot begin. Its machine protocol (QMP) tells these apart.
"""

import ctypes
import os
import signal
import socket
import subprocess

from lib.port import ROOT
from lib.qmp import Qmp

# The output of the guest that was started last, by any program.
LOG = ROOT / "build" / "console.log"

# Reasons of QMP's event SHUTDOWN with which no kernel has given a status.
REASONS = {
    "guest-reset": "the machine was reset from inside",
    "guest-shutdown": "the machine was switched off without a status",
    "guest-panic": "the machine told QEMU of a panic",
    "subsystem-reset": "a device reset the machine",
    "host-signal": "a signal ended QEMU",
    "host-qmp-quit": "QEMU was told to quit",
    "host-qmp-system-reset": "QEMU was told to reset the machine",
    "host-ui": "QEMU's window was closed",
    "host-error": "QEMU met an error",
}


def end_with_parent() -> None:
    """For a child before it becomes QEMU: the kernel ends it when we end, by
    any signal, so that no guest is left behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def console_args() -> list[str]:
    """QEMU's arguments for a console on its standard input and output, and in LOG."""
    stdio = "stdio,id=console,mux=on,signal=off"
    if os.access(LOG.parent, os.W_OK):
        stdio += ",logfile=" + str(LOG).replace(",", ",,")
    return ["-chardev", stdio, "-serial", "chardev:console", "-mon", "chardev=console"]


def kernel_status(status: int) -> int | None:
    """The kernel's own status, from QEMU's: arch.h's power_status() backwards. None:
    the kernel gave none."""
    return (status - 33) // 2 if 33 <= status < 256 and status % 2 else None


class Witness:
    """A monitor of one QEMU. It stands on two sockets that exist before QEMU does, with the
    first command in them, so that nothing is missed however soon QEMU ends."""

    def __init__(self, command: list[str], ends: dict[str, int] | None = None):
        """ends: of a machine without a device that takes a status, the kernel's by QMP's reason
        (arch/README.md)."""
        self.command = command
        self.ends = ends or {}
        self.program = command[0].rpartition("/")[2]
        self.reason: str | None = None  # QMP's word, once QEMU has ended
        ours, self.theirs = socket.socketpair()
        self.qmp = Qmp(ours)

    def start(self, **options) -> subprocess.Popen:
        """Run QEMU, as subprocess.Popen() would. It ends with this program."""
        fd = self.theirs.fileno()
        if os.access(LOG.parent, os.W_OK):  # a guest that still runs keeps its own
            LOG.unlink(missing_ok=True)
        with self.theirs:
            return subprocess.Popen(
                [*self.command, "-chardev", f"socket,id=witness,fd={fd}",
                 "-mon", "chardev=witness,mode=control"],
                pass_fds=[fd], preexec_fn=end_with_parent, **options)

    def kernel_status(self, status: int, _lines: list[str] | None = None) -> int | None:
        """The kernel's own, where QEMU has ended with `status`. A machine without a device that
        takes it stops at an address that says it, and QEMU tells of such an end."""
        told = [x["data"].get("info", {}) for x in self.qmp.drain()
                if x.get("event") == "GUEST_PANICKED"]
        for event in self.qmp.said:
            if event.get("event") == "SHUTDOWN" and event["data"]["reason"] in self.ends:
                return self.ends[event["data"]["reason"]]
        stops = [x["psw-addr"] for x in told if x.get("reason") == "disabled-wait"]
        return kernel_status(stops[0] if stops else status)

    def ended(self, status: int, lines: list[str]) -> tuple[bool, str]:
        """QEMU has ended with `status`, which is no kernel's, and `lines` stand on the console.
        Has it run a kernel? Why has it ended, in words?"""
        answers = self.qmp.drain()
        self.reason = next((x["data"]["reason"] for x in answers
                            if x.get("event") == "SHUTDOWN"), None)
        own = [x.partition(": ")[2] for x in lines if x.startswith(f"{self.program}: ")]
        said = f": {own[-1]}" if own else ""
        if status < 0:
            return True, f"a signal ended QEMU: {signal.strsignal(-status)}"
        if self.reason:
            return True, REASONS.get(self.reason, f"QEMU says {self.reason}") + said
        # QEMU answers when it runs the machine, late, if it goes from one timer to the next
        # (-icount sleep=off). A line that is not QEMU's own is the machine's, too.
        if status and not any("return" in x for x in answers) and len(own) == sum(
                bool(x.strip()) for x in lines):
            return False, f"QEMU refused its arguments{said}; no kernel ran"
        return True, f"QEMU ended with status {status} by itself{said}"
