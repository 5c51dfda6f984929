# SPDX-License-Identifier: MIT
"""A copy of the tree with one architecture built, or none, to plant mistakes in: for
tools/mutations, tools/mutate and tests."""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Iterator

from lib import qemu
from lib.variants import ROOT, run_make


class Copy:
    """The copy, in build/NAME. It is brought up to date, and built without a mistake."""

    def __init__(self, arch: str | None, name: str):
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
        done = self.make("-j2", "build/host/stale.so")
        if done.returncode:
            raise qemu.UsageError(f"{arch} cannot be built without a mistake: "
                                  + done.stderr.strip().split("\n")[0])

    def make(self, *args: str) -> subprocess.CompletedProcess:
        """The kernel, and this."""
        return run_make(f"ARCH={self.arch}", "all", *args, cwd=self.path) if self.arch else \
            subprocess.CompletedProcess(args, 0)

    @contextlib.contextmanager
    def planted(self, file: str, old: str, new: str) -> Iterator[Path]:
        """The kernel, if there is one, with one mistake: old, which stands once in that file, is
        new there."""
        place = self.path / file
        text = place.read_text()
        assert text.count(old) == 1, f"{file}: {old!r}"
        place.write_text(text.replace(old, new))
        try:
            done = self.make()
            assert done.returncode == 0, done.stderr
            yield self.path / "build" / (self.arch or "") / "nopl.elf"
        finally:
            place.write_text(text)
