# SPDX-License-Identifier: MIT
"""The reader of device trees against damaged trees, on the host, under the compiler's
sanitizers. The corpus is made by QEMU itself."""

import re
import subprocess

import pytest
from conftest import ARCHES, ROOT
from lib import qemu

COPIES = 20000
# Ports whose firmware hands over a device tree.
WITH_TREE = [a for a in ARCHES
             if "boot/fdt.c" in (ROOT / "arch" / a / "port.mk").read_text()]


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory):
    """tests/fdt/fuzz.c, built."""
    out = tmp_path_factory.mktemp("fdt") / "fuzz"
    subprocess.run(["gcc", "-std=gnu2x", "-g", "-O1", "-w",
                    f"-Iarch/{WITH_TREE[0]}", "-I.",
                    "-fsanitize=address,undefined", "-fno-sanitize-recover",
                    "tests/fdt/fuzz.c", "-o", str(out)], cwd=ROOT,
                   check=True)
    return out


@pytest.mark.parametrize("smp", [1, 8])
@pytest.mark.parametrize("arch", WITH_TREE)
def test_damaged_trees(arch, smp, fuzz, tmp_path):
    """Each is read, or refused in one line. Nothing outside of it is read."""
    info = qemu.port.read(arch)
    tree = tmp_path / "tree.dtb"
    args = [f"{a},dumpdtb={tree}" if info["args"][i - 1] in ("-M", "-machine") else a
            for i, a in enumerate(info["args"])]
    subprocess.run([info["qemu"], *args, "-smp", str(smp), "-display", "none",
                    "-m", "256M"],
                   check=False, capture_output=True)
    assert tree.exists()
    done = subprocess.run([str(fuzz), str(tree), str(COPIES)], text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    through, refused = map(int, re.match(r"(\d+) read, (\d+) refused",
                                         done.stdout).groups())
    assert through + refused == COPIES and min(through, refused) > COPIES / 100
