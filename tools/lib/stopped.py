# SPDX-License-Identifier: MIT
"""A QEMU whose guest stands before its first instruction, and waits for gdb."""

import subprocess
import tempfile

from lib import qemu
from lib.stacks import gdb_socket
from lib.witness import Witness


class Stopped:
    """It ends with the `with`. UsageError: it could not begin, in QEMU's own words."""

    def __init__(self, command: list[str], log: str, ends: dict[str, int] | None = None):
        """log: the file for the console, which has no other reader. ends: as Witness has it."""
        self.folder = tempfile.TemporaryDirectory()
        self.words = tempfile.TemporaryFile("w+")  # QEMU's own
        command = qemu.replace_option(command, "-chardev", "null,id=console,mux=on,logfile="
                                      + log.replace(",", ",,"))
        self.witness = Witness([*command, "-S"], ends)
        # Its own session: Ctrl-C is for gdb.
        self.process = self.witness.start(stdin=subprocess.DEVNULL, stdout=self.words,
                                          stderr=subprocess.STDOUT, start_new_session=True)
        try:
            self.socket = gdb_socket(self.witness.qmp, self.folder.name)
        except (OSError, RuntimeError) as error:
            why = f"no gdb: {error}"
            if isinstance(error, ConnectionError):
                self.process.wait(timeout=qemu.LAST_WAIT)
                why = self.ended()[1]
            self.close()
            raise qemu.UsageError(why) from None

    def __enter__(self) -> "Stopped":
        return self

    def __exit__(self, *_exc) -> None:
        self.close()

    def ended(self) -> tuple[bool, str]:
        """QEMU has ended, without a status of the kernel's: Witness.ended()."""
        self.words.seek(0)
        return self.witness.ended(self.process.returncode, self.words.read().splitlines())

    def close(self) -> None:
        """End the guest."""
        self.process.kill()
        self.process.wait()
        self.words.close()
        self.folder.cleanup()
