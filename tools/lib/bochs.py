# SPDX-License-Identifier: MIT
"""Bochs, a second machine for a port whose machine.json names its CPU in "iso": it interleaves
CPUs after each instruction, and its instruction cache is not QEMU's."""

import os
import re
import subprocess
import threading
import time
import tty
from pathlib import Path

from lib.port import UsageError, find_program
from lib.witness import LOG, end_with_parent

# An instruction of each CPU takes 1/IPS of a second of the guest's. More: sleeping takes the host
# longer, and so does the BIOS. Less: the guest does too little between two timers.
IPS = 50_000_000

# COM1 goes to a pipe. Where the kernel ends the machine by ACPI, Bochs calls it a panic.
SETTINGS = """
config_interface: textconfig
display_library: term
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
cpu: model={model}, count={smp}, quantum=1, ips={ips}, reset_on_triple_fault=0
memory: guest={memory}, host={memory}
clock: sync=none, time0=0
pci: enabled=1, chipset=i440fx
com1: enabled=1, mode=file, dev=/proc/self/fd/{console}
ata0-master: type=cdrom, path="{iso}", status=inserted
boot: cdrom
log: {folder}/log
panic: action=fatal
error: action=report
info: action=ignore
debug: action=ignore
"""
SWITCHED_OFF = "ACPI control: soft power off"


class Bochs:
    """One Bochs, for lib.qemu's boot(), in place of a Witness. Nothing takes the kernel's status,
    so the console's last line says it, and counts if Bochs says that ACPI ended the machine."""

    qmp = None

    def __init__(self, iso: dict, image: str, smp: int, memory: str):
        if "bochs" not in iso:
            raise UsageError("--machine bochs: it is no machine of this port")
        if smp > 8:
            raise UsageError(f"--smp {smp}: Bochs has at most 8 CPUs")
        self.folder = Path(image).parent
        self.program = find_program("bochs-bin")
        mib = int(memory[:-1]) * (1024 if memory[-1] == "G" else 1)
        self.settings = {"iso": image, "smp": smp, "memory": mib, "model": iso["bochs"],
                         "ips": IPS, "folder": self.folder}

    def start(self, **_options) -> subprocess.Popen:
        """Run it. Its standard output is the guest's console."""
        log = LOG if os.access(LOG.parent, os.W_OK) else os.devnull
        tee = subprocess.Popen(["tee", str(log)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with tee.stdin as console:
            settings, commands = self.folder / "settings", self.folder / "commands"
            settings.write_text(SETTINGS.format(console=console.fileno(), **self.settings))
            commands.write_text("continue\n")  # Debian's has a debugger, which waits for one
            with open(self.folder / "words", "wb") as words:
                process = subprocess.Popen(
                    [self.program, "-q", "-f", settings, "-rc", commands], stdout=words,
                    stdin=subprocess.DEVNULL, stderr=words, pass_fds=[console.fileno()],
                    env=os.environ | {"TERM": "xterm"}, preexec_fn=end_with_parent)
        process.stdout = tee.stdout
        threading.Thread(target=self.drain, args=(process,), daemon=True).start()
        return process

    def drain(self, process: subprocess.Popen) -> None:
        """Take its screen, which it writes to a terminal of its own, and waits when that is
        full."""
        while process.poll() is None:
            name = re.search(r'connected to screen "(.*)"', self.text("words"))
            if not name:
                time.sleep(0.1)
                continue
            screen = os.open(name[1], os.O_RDONLY | os.O_NOCTTY)
            try:
                tty.setraw(screen)
                while os.read(screen, 65536):
                    pass
            except (OSError, tty.error):  # it has ended
                return
            finally:
                os.close(screen)

    def text(self, name: str) -> str:
        """Of a file that it writes."""
        path = self.folder / name
        return path.read_text(errors="replace") if path.is_file() else ""

    def kernel_status(self, _status: int, lines: list[str]) -> int | None:
        """The kernel's own, if it gave one."""
        last = next((x for x in reversed(lines) if x), "")
        match = re.fullmatch(r"ended with status (\d+)", last)
        return int(match[1]) if match and SWITCHED_OFF in self.text("log") else None

    def ended(self, status: int, lines: list[str]) -> tuple[bool, str]:
        """Bochs has ended, and the kernel gave no status: as Witness.ended()."""
        said = re.findall(r">>PANIC<< (.*)", self.text("log"))
        why = f": {said[-1]}" if said else ""
        if not self.text("log") or not any(lines):
            return False, f"Bochs ended with status {status}{why}; no kernel ran"
        return True, f"Bochs ended{why}"
