# SPDX-License-Identifier: MIT
"""A CD image with a kernel, its command line and GRUB, of a port that says in its machine.json
that its machine starts from one ("iso")."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lib import port, program

MODULES = "normal iso9660 biosdisk"


def facts(arch: str) -> dict:
    """The port's. UsageError: no machine of it starts from a CD."""
    if "iso" in (info := port.read(arch)):
        return info["iso"]
    can = [x for x in port.architectures() if "iso" in port.read(x)]
    raise port.UsageError(f"{arch} has no CD image; choose one of: {' '.join(can)}")


def words(append: str) -> str:
    """A command line as words of GRUB's, which puts a word that has a space in quotes again.
    UsageError: what GRUB would put a backslash before."""
    if re.search(r"['\\\n]", append) or append.count('"') % 2:
        raise port.UsageError(f"command line {append!r}: on a CD it must have no ', no \\, "
                              "and no open quote")
    return " ".join("'" + word.replace('"', "") + "'"
                    for word in re.findall(r'(?:[^\s"]|"[^"]*")+', append))


def make(arch: str, elf: Path | str, append: str, image: Path | str) -> None:
    """Write the image. The kernel goes without its debugging information: GRUB reads all there
    is."""
    grub = facts(arch)
    if not Path(elf).is_file():
        raise port.UsageError(f"there is no {elf}: make ARCH={arch}")
    strip = port.read(arch)["objdump"][0].replace("objdump", "strip")
    with tempfile.TemporaryDirectory() as folder:
        boot = Path(folder, "boot")
        (boot / "grub").mkdir(parents=True)
        (boot / "grub/grub.cfg").write_text(
            f"{grub['load']} /boot/nopl.elf {words(append)}\nboot\n")
        for command in ([strip, "-o", f"{boot}/nopl.elf", str(elf)],
                        ["grub-mkrescue", "-d", grub["folder"], "-o", str(image),
                         "--fonts=", "--locales=", "--themes=",
                         f"--install-modules={grub['load']} {MODULES}", folder]):
            done = subprocess.run([port.find_program(command[0]), *command[1:]], text=True,
                                  capture_output=True, check=False)
            if done.returncode:
                why = (done.stderr.strip().splitlines() or ["no reason is given"])[-1]
                raise port.UsageError(f"{command[0]}: {why}")


def main() -> int:
    """iso.py ARCH ELF IMAGE APPEND: for the Makefile."""
    arch, elf, image, append = sys.argv[1:]
    make(arch, elf, append, image)
    print(image)
    return 0


if __name__ == "__main__":
    program.end_with(main)
