# SPDX-License-Identifier: MIT
"""A guest's control files on this machine, by tools/tracefs."""

import os
import subprocess
from pathlib import Path

from lib.port import ROOT, UsageError


class SharedMemory:
    """The guest's memory as a file that programs of the host map, and QEMU's options for that. It
    has no name, so that nothing is left behind, however this program ends."""

    def __init__(self, size: str):
        self.file = os.memfd_create("nopl-memory")
        self.path = f"/proc/{os.getpid()}/fd/{self.file}"
        self.args = ["-object", f"memory-backend-file,id=ram,size={size},share=on,"
                     f"mem-path={self.path}", "-machine", "memory-backend=ram"]


class Mount:
    """A guest's control files in a folder of this machine: QEMU's options for that,
    and tools/tracefs, which begins when QEMU has."""

    def __init__(self, folder: str, memory: str, without: str | None = None):
        self.folder, self.without = Path(folder), without
        self.tool = ROOT / "build/host/tracefs"
        if not self.folder.is_dir() or any(self.folder.iterdir()):
            raise UsageError(f"--mount {folder}: must be an empty folder")
        if not os.access("/dev/fuse", os.R_OK | os.W_OK):
            raise UsageError("--mount: there is no /dev/fuse that may be used here")
        if not self.tool.is_file():
            raise UsageError(f"there is no {self.tool}: make {self.tool}")
        shared = SharedMemory(memory)
        self.shared, self.args = shared.path, shared.args

    def begin(self, pid: int, **options) -> subprocess.Popen:
        """QEMU runs, as this process. tracefs ends with it. Returns tracefs."""
        return subprocess.Popen([self.tool, self.shared, self.folder, str(pid),
                                 *([self.without] if self.without else [])],
                                start_new_session=True, **options)
