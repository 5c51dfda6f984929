# SPDX-License-Identifier: MIT
"""What a firmware says, changed before the kernel reads it: what the kernel gets, or why it refuses
to boot. One boot a change, by gdb. Ports with device trees have tests/test_fdt.py. And machines
that are not those of machine.json: the kernel refuses them in one line, or runs there."""

import re
import tomllib

import pytest
from conftest import ARCHES, ROOT
from gdbboots import Boots

SAID = {a: tomllib.loads((ROOT / "boot" / a / "said.toml").read_text()) for a in ARCHES}


@pytest.mark.parametrize("arch", [a for a in ARCHES if "said" in SAID[a]])
def test_words(arch, image, tmp_path):
    """The kernel gets what the firmware says, and words that make no sense have a refusal."""
    boots, rows = Boots(arch, image, tmp_path), SAID[arch]["said"]
    for row in rows:
        assert set(row) <= {"why", "smp", "cpu", "do", "gets", "refused"}
        boots.add(SAID[arch].get("at", "boot_main"), row.get("do", []), "kernel_main",
                  [f"boot_info.{name}" for name in row.get("gets", {})], row.get("smp", 3), "a b",
                  row.get("cpu"))
    for row, (found, console) in zip(rows, boots.run()):
        assert found == {f"boot_info.{name}": n for name, n in row.get("gets", {}).items()}, \
            row["why"]
        refusal = re.search(r"^boot: (.*?)\r*$", console, re.M)
        assert bool(refusal) == ("refused" in row), f"{row['why']}: {refusal}"
        assert not refusal or re.fullmatch(row["refused"], refusal[1]), refusal[1]


MACHINES = [(arch, row) for arch in ARCHES for row in SAID[arch].get("machine", [])]


@pytest.mark.parametrize("arch, row", [
    pytest.param(arch, row, id=f"{arch}-{row['why']}") for arch, row in MACHINES],
    indirect=["arch"])
def test_other_machines(arch, row, run_tool, tmp_path):
    """On a machine that the kernel cannot run on, its first instructions say why, and end it. On
    one that differs from what all other tests have, the port keeps its contract."""
    assert set(row) in ({"why", "qemu", "refused"}, {"why", "qemu", "test"})
    tests, log = row.get("test", ""), tmp_path / "console"
    done = run_tool("--arch", arch, "--smp", "2" if tests else "1", *row["qemu"], "--log", str(log),
                    "--append", f'run="test {tests}; poweroff"')
    assert done.returncode == (0 if tests else 3), done.stdout
    last = log.read_text().splitlines()[-1:]
    assert tests or last == [f"boot: {row['refused']}"], done.stdout
