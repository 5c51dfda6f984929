# SPDX-License-Identifier: MIT
"""A copy of the tree with one architecture built, to plant mistakes in: for
tools/mutations and tools/mutate."""

import os
import shutil
import subprocess
from pathlib import Path

from lib import qemu
from lib.variants import ROOT, run_make


class Copy:
    """The copy, in build/NAME. It is brought up to date, and built without a mistake."""

    def __init__(self, arch: str, name: str):
        self.arch = arch
        self.path: Path = ROOT / "build" / name
        names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"],
                               cwd=ROOT, check=True, text=True,
                               capture_output=True).stdout.split()
        for file in names:
            source, copy = ROOT / file, self.path / file
            if source.is_file() and (not copy.exists() or
                                     source.read_bytes() != copy.read_bytes()):
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, copy)
                os.utime(copy)
        # Files that have gone from the tree since, or moved.
        for copy in self.path.rglob("*"):
            inside = copy.relative_to(self.path)
            if (inside.parts[0] != "build" and copy.is_file()
                    and str(inside) not in names):
                copy.unlink()
        done = run_make(f"ARCH={arch}", "-j2", "all", "build/host/stale.so",
                        cwd=self.path)
        if done.returncode:
            raise qemu.UsageError(f"{arch} cannot be built without a mistake: "
                                  + done.stderr.strip().split("\n")[0])
